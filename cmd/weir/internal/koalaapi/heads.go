package koalaapi

import (
	"bytes"
	"strconv"
	"strings"
)

// MaxHead is the longest head of a request, in bytes. A multi/browse has all of
// its requests in the first line.
const MaxHead = 256 << 10

// heads rewrites the heads in a stream of requests, whatever the pieces in
// which it comes, so that net/http accepts all that koala accepts. A head keeps
// its method, its target and the fields in [heads.field]; koala's calls use no
// others. Each head gets exactly one Host. The zero value stands before the
// first request.
type heads struct {
	line   []byte // the line so far
	size   int    // of the head so far, in bytes
	inside bool   // behind the request line
	over   bool   // the rest of the stream is passed on as it is

	fields []byte // the fields that are kept, as they are written
	length int64  // the last Content-Length, plus 1; 0: none
	chunks bool   // the body comes in chunks
	last   bool   // the connection ends with this request
}

// rewrite appends in to out, with its heads rewritten. It holds back the line
// that in breaks off in.
func (h *heads) rewrite(out, in []byte) []byte {
	for len(in) > 0 && !h.over {
		n := bytes.IndexByte(in, '\n') + 1
		whole := n > 0
		if !whole {
			n = len(in)
		}
		h.line, in = append(h.line, in[:n]...), in[n:]
		if h.size += n; h.size > MaxHead {
			return append(h.giveUp(out), in...) // net/http refuses it
		}
		if whole {
			out = h.read(out, bytes.TrimSuffix(h.line[:len(h.line)-1], []byte("\r")))
			h.line = h.line[:0]
		}
	}
	return append(out, in...)
}

// giveUp passes on the rest of the stream as it is.
func (h *heads) giveUp(out []byte) []byte {
	out = append(out, h.line...)
	*h = heads{over: true}
	return out
}

// read reads one line of a head. Empty lines before a request are dropped.
func (h *heads) read(out, line []byte) []byte {
	switch {
	case h.inside && len(line) == 0:
		return h.end(out)
	case h.inside:
		h.field(line)
	case len(line) > 0:
		h.inside = true
		return appendRequestLine(out, line)
	default:
		h.size = 0
	}
	return out
}

// field reads one field. koala's clients send none that is not well formed; a
// head that has one ends the connection, since it may hide a body.
func (h *heads) field(line []byte) {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t") {
		h.last = true
		return
	}
	value = bytes.Trim(value, " \t")
	switch {
	case is(name, "Content-Length"):
		h.last = true
		if n, err := strconv.ParseUint(string(value), 10, 62); err == nil {
			h.length = int64(n) + 1
		}
	case is(name, "Transfer-Encoding"):
		h.last = true
		h.chunks = h.chunks || is(value, "chunked")
	case is(name, "Connection"), is(name, "Authorization"), is(name, "Expect") && is(value, "100-continue"):
		if bytes.IndexFunc(value, isControl) < 0 {
			h.fields = append(append(append(h.fields, name...), ": "...), value...)
			h.fields = append(h.fields, "\r\n"...)
		}
	}
}

// is reports whether text is word, in letters of any case.
func is(text []byte, word string) bool {
	return len(text) == len(word) && strings.EqualFold(string(text), word)
}

// isControl reports whether r is a control character, which no field may hold.
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// end ends a head. A request that may have a body is the last one of its
// connection, as every one of koala's is: so the start of the next head never
// depends on the length of a body.
func (h *heads) end(out []byte) []byte {
	out = append(append(out, h.fields...), "Host:\r\n"...)
	switch {
	case h.chunks:
		out = append(out, "Transfer-Encoding: chunked\r\n"...)
	case h.length > 0:
		out = strconv.AppendInt(append(out, "Content-Length: "...), h.length-1, 10)
		out = append(out, "\r\n"...)
	}
	if h.last {
		out = append(out, "Connection: close\r\n"...)
	}
	*h = heads{line: h.line, fields: h.fields[:0], over: h.last}
	return append(out, "\r\n"...)
}
