package respapi

import (
	"bytes"
	"encoding/hex"
	"errors"

	"github.com/weirhq/weir/cmd/weir/internal/sizes"
)

// Resource limits of what a client may send. A command with larger arguments is skipped, if none has more than
// maxSkipped bytes: other callers can share the connection of the one who sends it.
const (
	maxArguments = 256
	maxArgument  = 16 << 10      // bytes
	maxCommand   = 256 << 10     // bytes
	maxSkipped   = sizes.Message // bytes of an argument
	maxInline    = 4 << 10       // bytes of a command without lengths
	maxBatch     = 1000          // commands
)

// Errors of bytes that are not a command. They end the connection, because the next command
// cannot be found.
var (
	errArguments       = errors.New("ERR Protocol error: invalid multibulk length: want at most 256 arguments")
	errArgument        = errors.New("ERR Protocol error: invalid bulk length: want at most 1048576 bytes")
	errUnauthenticated = errors.New("ERR Protocol error: unauthenticated bulk length: want at most 16384 bytes")
	errInline          = errors.New("ERR Protocol error: too big inline request")
	errDollar          = errors.New("ERR Protocol error: expected '$' and the length of an argument")
	errNumber          = errors.New("ERR Protocol error: invalid length")
	errLine            = errors.New("ERR Protocol error: expected \\r\\n after an argument")
	errQuotes          = errors.New("ERR Protocol error: unbalanced quotes in request")
	errHTTP            = errors.New("ERR Protocol error: this port speaks the Redis protocol, not HTTP")
)

// span is a part of a text: from its first byte to the one after its last.
type span struct{ from, to int }

// scan finds the command at the start of b and appends its arguments to args. It returns the bytes
// that the command takes. 0 bytes without an error mean that the command is not complete. A command
// without arguments is ignored. Of a command that is too large, n bytes are scanned, and the rest is to be skipped.
// scan changes the bytes of an inline command, so that it cannot be scanned again: see scanInline.
func scan(b []byte, args []span) (_ []span, n int, skipped rest, err error) {
	if len(b) == 0 {
		return args, 0, rest{}, nil
	}
	if b[0] != '*' {
		args, n, err = scanInline(b, args)
		return args, n, rest{}, err
	}
	count, n, err := scanLength(b, maxArguments, errArguments)
	if n == 0 || err != nil {
		return args, 0, rest{}, err
	}
	before := len(args)
	for i := range count {
		length, used, err := scanBulk(b[n:])
		if used == 0 || err != nil {
			return args[:before], 0, rest{}, err
		}
		n += used
		if length > maxArgument || n+length+2 > maxCommand {
			return args, n, rest{bytes: length + 2, arguments: count - i - 1}, nil
		}
		if len(b) < n+length+2 {
			return args[:before], 0, rest{}, nil
		}
		if b[n+length] != '\r' || b[n+length+1] != '\n' {
			return args, 0, rest{}, errLine
		}
		args = append(args, span{n, n + length})
		n += length + 2
	}
	return args, n, rest{}, nil
}

// scanBulk reads the line with the length of an argument. It returns the bytes of the line, or 0 if it is not
// complete.
func scanBulk(b []byte) (length, n int, err error) {
	if len(b) == 0 {
		return 0, 0, nil
	}
	if b[0] != '$' {
		return 0, 0, errDollar
	}
	if length, n, err = scanLength(b, maxSkipped, errArgument); length < 0 {
		return 0, 0, errArgument
	}
	return length, n, err
}

// rest is what follows of a command that is too large: the bytes of an argument, with the end of its line, and further
// arguments.
type rest struct{ bytes, arguments int }

// skip removes from r what b has of it, and returns how many bytes of b these are.
func (r *rest) skip(b []byte) (n int, err error) {
	for n < len(b) && *r != (rest{}) {
		switch {
		case r.bytes > len("\r\n"):
			some := min(r.bytes-len("\r\n"), len(b)-n)
			n, r.bytes = n+some, r.bytes-some
		case r.bytes > 0:
			if b[n] != "\n\r"[r.bytes-1] {
				return n, errLine
			}
			n, r.bytes = n+1, r.bytes-1
		default:
			length, used, err := scanBulk(b[n:])
			if used == 0 || err != nil {
				return n, err
			}
			n += used
			*r = rest{bytes: length + len("\r\n"), arguments: r.arguments - 1}
		}
	}
	return n, nil
}

// maxLength is the maximum size of a line with a length, such as *3 or $-1, in bytes.
const maxLength = 16

// scanLength reads the number after the first byte of a line. It returns the bytes of the line with
// its end, or 0 if the line is not complete. A number of -1 means null.
func scanLength(b []byte, most int, beyond error) (value, n int, err error) {
	i := 1
	negative := i < len(b) && b[i] == '-'
	if negative {
		i++
	}
	first := i
	for ; i < len(b) && '0' <= b[i] && b[i] <= '9'; i++ {
		if value = value*10 + int(b[i]-'0'); value > most {
			return 0, 0, beyond
		}
	}
	switch {
	case i > maxLength:
		return 0, 0, errNumber
	case i == len(b):
		return 0, 0, nil
	case i == first || b[i] != '\r' || negative && value != 1:
		return 0, 0, errNumber
	case i+1 == len(b):
		return 0, 0, nil
	case b[i+1] != '\n':
		return 0, 0, errNumber
	}
	if negative {
		value = -1
	}
	return value, i + 2, nil
}

// scanInline reads a command as people type it: words between blanks, up to the end of the
// line. It writes the text of each word, without quotes and escapes, over the word in b.
func scanInline(b []byte, args []span) (_ []span, n int, err error) {
	end := bytes.IndexByte(b[:min(len(b), maxInline)], '\n')
	if end < 0 {
		if len(b) >= maxInline {
			return args, 0, errInline
		}
		return args, 0, nil
	}
	line := b[:end]
	before := len(args)
	for i := 0; i < len(line); {
		if isBlank(line[i]) {
			i++
			continue
		}
		if len(args)-before == maxArguments {
			return args, 0, errArguments
		}
		length, used, ok := unquote(line[i:])
		if !ok {
			return args, 0, errQuotes
		}
		args = append(args, span{i, i + length})
		i += used
	}
	// A web page can make a browser send a request to this port. What the browser sends
	// starts with a line of HTTP, and may have commands in its body.
	if words := args[before:]; len(words) == 3 && bytes.HasPrefix(line[words[2].from:], []byte("HTTP/")) {
		return args, 0, errHTTP
	}
	return args, end + 1, nil
}

// unquote reads the first word of line as Redis does, and writes its text, without quotes and
// escapes, to the start of line. It returns the length of the text, and the bytes that the word
// used in line. ok is false if a quote is not closed, or if no blank follows the closing quote.
func unquote(line []byte) (length, used int, ok bool) {
	quote := byte(0)
	for used < len(line) {
		c := line[used]
		used++
		switch {
		case quote == 0 && isBlank(c):
			return length, used, true
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
			continue
		case c == quote:
			return length, used, used == len(line) || isBlank(line[used])
		case c == '\\' && used < len(line) && (quote == '"' || quote == '\'' && line[used] == quote):
			var n int
			c, n = escaped(line[used:])
			used += n
		}
		line[length] = c
		length++
	}
	return length, used, quote == 0
}

// escaped decodes the escape sequence at the start of b, without its backslash. It returns the
// byte that the sequence stands for, and the length of the sequence.
func escaped(b []byte) (c byte, n int) {
	switch b[0] {
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case 'b':
		return '\b', 1
	case 'a':
		return '\a', 1
	case 'x':
		if hexadecimal, err := hex.DecodeString(string(b[1:min(3, len(b))])); err == nil && len(hexadecimal) == 1 {
			return hexadecimal[0], 3
		}
	}
	return b[0], 1
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == 0 }
