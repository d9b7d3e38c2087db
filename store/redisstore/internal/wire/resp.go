package wire

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/weirhq/weir/store/redisstore/internal/script"
)

// errReply is the error of bytes that are no reply.
var errReply = errors.New("the server's answer is no reply")

// appendCommand appends a command as the server reads it.
func appendCommand(b []byte, words ...string) []byte {
	b = appendSize(b, '*', len(words))
	for _, w := range words {
		b = appendWord(b, w)
	}
	return b
}

func appendEvalsha(b []byte, p *script.Program, keys, args []string) []byte {
	b = appendSize(b, '*', 3+len(keys)+len(args))
	b = append(b, "$7\r\nEVALSHA\r\n"...)
	b = appendWord(b, p.SHA)
	b = appendWord(b, strconv.Itoa(len(keys)))
	for _, k := range keys {
		b = appendWord(b, k)
	}
	for _, a := range args {
		b = appendWord(b, a)
	}
	return b
}

func appendWord(b []byte, w string) []byte {
	b = appendSize(b, '$', len(w))
	b = append(b, w...)
	return append(b, '\r', '\n')
}

func appendSize(b []byte, kind byte, n int) []byte {
	b = append(b, kind)
	b = strconv.AppendInt(b, int64(n), 10)
	return append(b, '\r', '\n')
}

// replySize returns the size of the reply that b begins with, or 0 when there is
// more to read. Errors are those of bytes that are no reply.
func replySize(b []byte) (int, error) {
	at := 0
	for left := 1; left > 0; left-- {
		n, more, err := elementSize(b[at:])
		if n == 0 || err != nil {
			return 0, err
		}
		at += n
		left += more
	}
	return at, nil
}

// maxElements is the most elements of an array, and maxReply the most bytes of a
// string, that a server answers.
const (
	maxElements = 1 << 20
	maxReply    = 512 << 20
)

// elementSize returns the size of the element that b begins with, and how many
// elements follow that belong to it. A size of 0 means that there is more to read.
func elementSize(b []byte) (size, more int, err error) {
	line, whole := cutLine(b)
	if !whole {
		return 0, 0, nil
	}
	size = len(line) + 2
	switch line[0] {
	case '+', '-', ':':
		return size, 0, nil
	case '$', '*':
		n, err := strconv.Atoi(string(line[1:]))
		switch {
		case err != nil || n < -1 || n > maxReply || line[0] == '*' && n > maxElements:
		case line[0] == '*':
			return size, max(n, 0), nil
		case n == -1:
			return size, 0, nil
		case len(b) < size+n+2:
			return 0, 0, nil
		case b[size+n] == '\r' && b[size+n+1] == '\n':
			return size + n + 2, 0, nil
		}
	}
	return 0, 0, fmt.Errorf("%w: %.20q", errReply, line)
}

// cutLine returns the first line of b, which is not empty, and reports whether b
// has it whole. A line without a kind is returned as one of an unknown kind.
func cutLine(b []byte) (line []byte, whole bool) {
	for i := 0; i+1 < len(b); i++ {
		if b[i] == '\r' && b[i+1] == '\n' {
			if i == 0 {
				return b[:1], true
			}
			return b[:i], true
		}
	}
	return nil, false
}

// replyText returns the text of a whole reply: of a string, or of an error. It is
// empty for arrays.
func replyText(b []byte) (string, error) {
	line, _ := cutLine(b)
	switch line[0] {
	case '-':
		return "", &script.ServerError{Text: string(line[1:])}
	case '$':
		if end := len(b) - 2; end > len(line)+2 {
			return string(b[len(line)+2 : end]), nil
		}
		return "", nil
	case '*':
		return "", nil
	}
	return string(line[1:]), nil
}
