package shortcut

import (
	"bytes"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

// found is what the bytes of a client are.
type found int

const (
	plain   found = iota
	partial       // the start of what may become a plain call
	other         // not a plain call
)

// Bounds of a plain call.
const (
	maxCall   = 4 << 10 // bytes, with the body
	maxFields = 32      // lines of the head behind the first one
	maxDigits = 4       // of the length of the body
)

const method = "POST "

// head is the head of a plain call. Most clients send the same head again and again, but
// for the length of the body.
type head struct {
	text   string // with the empty line at its end
	digits span   // of Content-Length in text
	length int    // of the body
	close  bool   // the client wants the connection to be closed

	request http.Request
}

// span is a part of a text.
type span struct{ from, to int }

// again reports whether b starts with h, but for the length of the body. If it does, h
// has the length in b now, and again returns the bytes of the head.
func (h *head) again(b []byte) (n int, ok bool) {
	from := h.digits.from
	if h.text == "" || len(b) < from || string(b[:from]) != h.text[:from] {
		return 0, false
	}
	length, to := 0, from
	for ; to < len(b) && to-from <= maxDigits && '0' <= b[to] && b[to] <= '9'; to++ {
		length = 10*length + int(b[to]-'0')
	}
	rest := h.text[h.digits.to:]
	if to == from || to-from > maxDigits || len(b)-to < len(rest) || string(b[to:to+len(rest)]) != rest {
		return 0, false
	}
	if length != h.length || to-from != h.digits.to-from {
		h.length = length
		h.text = string(b[:to+len(rest)])
		h.digits.to = to
		h.request.Header["Content-Length"] = []string{h.text[from:to]}
	}
	return to + len(rest), true
}

// read reads the head at the start of b. If it is that of a plain call, read returns its
// bytes.
func (h *head) read(b []byte) (n int, what found) {
	if len(b) < len(method) && strings.HasPrefix(method, string(b)) {
		return 0, partial
	}
	if !bytes.HasPrefix(b, []byte(method)) {
		return 0, other
	}
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		if hasBareLine(b) {
			return 0, other
		}
		return 0, partial
	}
	n = end + 4
	*h = head{}
	text := string(b[:n])
	if !h.first(text) || !h.fields(text) {
		*h = head{}
		return 0, other
	}
	h.text = text
	return n, plain
}

// hasBareLine reports whether a line of b ends without a carriage return. net/http
// accepts such lines.
func hasBareLine(b []byte) bool {
	for i := 0; ; i++ {
		next := bytes.IndexByte(b[i:], '\n')
		if next < 0 {
			return false
		}
		if i += next; i == 0 || b[i-1] != '\r' {
			return true
		}
	}
}

const version = " HTTP/1.1"

// first reads the first line of text.
func (h *head) first(text string) bool {
	line, _, _ := strings.Cut(text, "\r\n")
	path, ok := strings.CutSuffix(line[len(method):], version)
	if !ok || path == "" || path[0] != '/' {
		return false
	}
	for i := range len(path) {
		if !inPath[path[i]] {
			return false
		}
	}
	h.request.Method, h.request.RequestURI, h.request.URL = http.MethodPost, path, &url.URL{Path: path}
	h.request.Proto, h.request.ProtoMajor, h.request.ProtoMinor = version[1:], 1, 1
	return true
}

// fields reads the other lines of text.
func (h *head) fields(text string) bool {
	count := strings.Count(text, "\n") - 2
	if count > maxFields {
		return false
	}
	header, values := make(http.Header, count), make([]string, count)
	for at := strings.IndexByte(text, '\n') + 1; at < len(text)-2; {
		line := text[at : at+strings.IndexByte(text[at:], '\n')+1]
		name, value, ok := cutField(line)
		if !ok {
			return false
		}
		switch name {
		case "Host":
			if h.request.Host != "" || !isHost(value) {
				return false
			}
			h.request.Host = value // net/http has it here alone
			at += len(line)
			continue
		case "Content-Length":
			if h.digits.to > 0 || len(value) == 0 || len(value) > maxDigits {
				return false
			}
			for i := range len(value) {
				if value[i] < '0' || value[i] > '9' {
					return false
				}
				h.length = 10*h.length + int(value[i]-'0')
			}
			h.digits.from = at + strings.LastIndex(line, value)
			h.digits.to = h.digits.from + len(value)
		case "Connection":
			h.close = strings.EqualFold(value, "close")
			if _, again := header[name]; again || !h.close && !strings.EqualFold(value, "keep-alive") {
				return false
			}
		case "Transfer-Encoding", "Upgrade", "Expect", "Trailer", "Te", "Pragma", "Proxy-Connection", "Http2-Settings":
			return false
		}
		if had := header[name]; had != nil {
			header[name] = append(had, value)
		} else {
			values[0] = value
			header[name], values = values[:1:1], values[1:]
		}
		at += len(line)
	}
	h.request.Header, h.request.Close = header, h.close
	return h.request.Host != "" && h.digits.to > 0
}

// cutField returns the name of a field in its canonical form, and its value. It reports
// whether the line has nothing that is written in several ways.
func cutField(line string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(line, ":")
	if !ok || name == "" {
		return "", "", false
	}
	for i := range len(name) {
		if !inName[name[i]] {
			return "", "", false
		}
	}
	value, ok = strings.CutSuffix(value, "\r\n")
	for i := range len(value) {
		if value[i] < ' ' || value[i] > '~' {
			return "", "", false
		}
	}
	return textproto.CanonicalMIMEHeaderKey(name), strings.Trim(value, " "), ok
}

func isHost(text string) bool {
	for i := range len(text) {
		if !inHost[text[i]] {
			return false
		}
	}
	return text != ""
}

// The bytes of the parts of a plain head.
var (
	inName = letters("-")
	inPath = letters("-._/")
	inHost = letters("-._:[]")
)

// letters returns the set of ASCII letters, digits and the bytes in more.
func letters(more string) (set [256]bool) {
	for c := range set {
		set[c] = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(more, byte(c)) >= 0 && c < 128
	}
	return set
}
