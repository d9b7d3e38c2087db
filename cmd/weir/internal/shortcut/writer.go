package shortcut

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// writer is the [http.ResponseWriter] of one connection. It collects an answer of usual
// size, so that one write sends it, and sends a larger one in chunks.
type writer struct {
	to   io.Writer
	now  time.Time // for the answer
	end  bool      // the connection is closed behind the answer
	told bool      // the handler says so

	header  http.Header
	status  int // 0: not written yet
	body    []byte
	out     []byte
	chunked bool // the head and a part of the body were sent
	err     error

	second int64  // since the epoch, of date
	date   []byte // the line with the time
}

// kept is the size, in bytes, up to which the body of an answer is collected.
const kept = 8 << 10

// begin empties w for an answer. end says that the connection is closed behind it.
func (w *writer) begin(now time.Time, end bool) {
	clear(w.header)
	w.now, w.end, w.told, w.chunked = now, end, false, false
	w.status, w.body, w.out = 0, w.body[:0], w.out[:0]
}

// Header implements [http.ResponseWriter].
func (w *writer) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter]. It ignores a second status, and those of
// answers that others follow, below 200.
func (w *writer) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
		w.first()
	}
}

// Write implements [io.Writer].
func (w *writer) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if !hasBody(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	if w.chunked {
		w.chunk(b)
		return len(b), w.err
	}
	if len(w.body)+len(b) <= kept {
		w.body = append(w.body, b...)
		return len(b), nil
	}
	w.chunked = true
	start := w.body
	if len(start) == 0 {
		start = b
	}
	w.head(-1, start)
	w.chunk(w.body)
	w.chunk(b)
	return len(b), w.err
}

// hasBody reports whether an answer with a status may have a body.
func hasBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// chunk sends what is in w.out, and a chunk.
func (w *writer) chunk(b []byte) {
	if len(b) == 0 {
		return
	}
	w.out = append(strconv.AppendInt(w.out, int64(len(b)), 16), "\r\n"...)
	w.send(w.out)
	w.send(b)
	w.out = append(w.out[:0], "\r\n"...)
}

func (w *writer) send(b []byte) {
	if w.err == nil {
		_, w.err = w.to.Write(b)
	}
}

// contentType is the only field of most answers.
const contentType = "Content-Type"

// first appends the first line and the fields that the handler has set, as they are
// when the status is written.
func (w *writer) first() {
	for _, v := range w.header["Connection"] {
		w.told = w.told || strings.EqualFold(v, "close")
	}
	w.end = w.end || w.told
	w.out = append(strconv.AppendInt(append(w.out, "HTTP/1.1 "...), int64(w.status), 10), ' ')
	if text := http.StatusText(w.status); text != "" {
		w.out = append(w.out, text...)
	} else {
		w.out = strconv.AppendInt(append(w.out, "status code "...), int64(w.status), 10)
	}
	w.out = append(w.out, "\r\n"...)
	if kind := w.header[contentType]; len(w.header) == 1 && len(kind) == 1 && kind[0] == "application/json" {
		w.out = append(w.out, contentType+": application/json\r\n"...)
		return
	}
	_ = w.header.WriteSubset((*fields)(w), own) // fields returns no error
}

// own are the fields that w writes itself.
var own = map[string]bool{"Content-Length": true, "Date": true, "Transfer-Encoding": true}

// fields appends to the head of the answer.
type fields writer

// Write implements [io.Writer].
func (f *fields) Write(b []byte) (int, error) {
	f.out = append(f.out, b...)
	return len(b), nil
}

// WriteString implements [io.StringWriter].
func (f *fields) WriteString(s string) (int, error) {
	f.out = append(f.out, s...)
	return len(s), nil
}

// head appends the lines that w writes itself, in the order in which net/http does, and
// the empty line. length is the length of the body, or -1 if the body has chunks, and
// start has the first bytes of it.
func (w *writer) head(length int, start []byte) {
	if second := w.now.Unix(); second != w.second {
		w.second = second
		w.date = append(w.now.UTC().AppendFormat(append(w.date[:0], "Date: "...), http.TimeFormat), "\r\n"...)
	}
	w.out = append(w.out, w.date...)
	if length >= 0 && hasBody(w.status) {
		w.out = append(strconv.AppendInt(append(w.out, "Content-Length: "...), int64(length), 10), "\r\n"...)
	}
	if _, set := w.header[contentType]; !set && len(start) > 0 {
		w.out = append(append(append(w.out, contentType+": "...), http.DetectContentType(start)...), "\r\n"...)
	}
	if w.end && !w.told {
		w.out = append(w.out, "Connection: close\r\n"...)
	}
	if length < 0 {
		w.out = append(w.out, "Transfer-Encoding: chunked\r\n"...)
	}
	w.out = append(w.out, "\r\n"...)
}

// finish sends what was not sent yet.
func (w *writer) finish() error {
	if w.chunked {
		w.out = append(w.out, "0\r\n\r\n"...)
	} else {
		w.WriteHeader(http.StatusOK)
		w.head(len(w.body), w.body)
		w.out = append(w.out, w.body...)
	}
	w.send(w.out)
	return w.err
}
