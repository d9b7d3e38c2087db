package api

import "bytes"

// heads completes the heads in a stream of requests, whatever the pieces in
// which it comes. It sees lines as net/http does, and holds back one byte at
// most. The zero value stands before the first request.
type heads struct {
	inside bool // behind the request line
	begun  bool // the line has bytes
	held   bool // one byte is held back: a return that may begin the empty line
	host   bool // this head has a Host
	body   bool // this request may have a body
	over   bool // no head follows that needs completing

	named  bool // the line's field has been looked at
	name   [len("transfer-encoding")]byte
	length int // of name so far
}

// complete appends in to out, with what its heads lack.
func (h *heads) complete(out, in []byte) []byte {
	for len(in) > 0 && !h.over {
		b := in[0]
		switch {
		case b == '\r' && !h.begun && !h.held:
			h.held, in = true, in[1:]
			continue
		case b == '\n' && !h.begun && h.inside:
			out = h.lacking(out)
		}
		if h.held {
			out = append(out, '\r')
			h.begun, h.named, h.held = b != '\n', true, false
		}
		n := 1
		switch {
		case b == '\n':
			h.inside = h.inside || h.begun
			h.begun, h.named, h.length = false, false, 0
		case h.named || !h.inside:
			h.begun = true
			if n = bytes.IndexByte(in, '\n'); n < 0 {
				n = len(in)
			}
		default:
			h.begun = true
			h.read(b)
		}
		out, in = append(out, in[:n]...), in[n:]
	}
	return append(out, in...)
}

// lacking appends, at the end of a head, what is not in it, and goes on to the
// next one.
func (h *heads) lacking(out []byte) []byte {
	if !h.host {
		out = append(out, "Host:\r\n"...)
	}
	if h.body {
		out = append(out, "Connection: close\r\n"...)
		h.over = true
	}
	h.inside, h.host, h.body = false, false, false
	return out
}

// read reads one byte of a field's name.
func (h *heads) read(b byte) {
	switch {
	case b == ':':
		h.named = true
		switch string(h.name[:h.length]) {
		case "host":
			h.host = true
		case "content-length", "transfer-encoding":
			h.body = true
		}
	case h.length == len(h.name):
		h.named = true // longer than all that matter
	default:
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		h.name[h.length] = b
		h.length++
	}
}
