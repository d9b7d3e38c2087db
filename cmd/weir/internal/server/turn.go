package server

import (
	"io"
	"net/http"
)

// turn is one request of a connection: its body, and its answer. From the end of the body to the
// beginning of the answer the connection is at work. Before and after that it waits for its client,
// which may send or read slowly.
type turn struct {
	http.ResponseWriter
	body   io.ReadCloser
	conn   *limitedConn
	stage  turnStage
	shared bool // the connection has other requests at the same time
}

type turnStage uint8

const (
	turnReceives turnStage = iota
	turnWorks
	turnAnswers
)

// mostUnread is more than the bytes of a body that net/http reads after the answer.
const mostUnread = 256<<10 + 1

// serve answers r by h.
func (t *turn) serve(g *limitedConn, h http.Handler, w http.ResponseWriter, r *http.Request) {
	t.ResponseWriter, t.body, t.conn, t.shared = w, r.Body, g, r.ProtoMajor > 1
	r.Body = t
	if head := sizeOfHead(r); g.limiter.incoming.most > 0 && (t.shared || head > smallHead) {
		g.hold(head, 1)
		defer g.hold(head, -1)
	}
	t.wait(1)
	defer t.wait(-1)
	defer t.answers()
	if r.ContentLength == 0 {
		// A client with HTTP/2 may announce an empty body, and not end it.
		_, _ = t.Read(nil)
	}
	h.ServeHTTP(t, r)
	if t.shared { // net/http would wait after this until the client takes a small answer
		t.answers()
		_ = http.NewResponseController(t.ResponseWriter).Flush()
	}
	if r.ProtoMajor == 1 && r.Header["Expect"] == nil {
		// net/http would read the rest of the body after this, when the head is not counted any more.
		_, _ = io.CopyN(io.Discard, t.body, mostUnread)
	}
}

// Read implements [io.Reader].
func (t *turn) Read(p []byte) (int, error) {
	n, err := t.body.Read(p)
	t.conn.settle()
	if err != nil && t.stage == turnReceives {
		t.stage = turnWorks
		t.wait(-1)
		t.conn.work(1)
	}
	return n, err
}

// Close implements [io.Closer].
func (t *turn) Close() error { return t.body.Close() }

// Write implements [http.ResponseWriter].
func (t *turn) Write(p []byte) (int, error) {
	t.answers()
	return t.ResponseWriter.Write(p)
}

// WriteString implements [io.StringWriter].
func (t *turn) WriteString(s string) (int, error) {
	t.answers()
	return io.WriteString(t.ResponseWriter, s)
}

// WriteHeader implements [http.ResponseWriter].
func (t *turn) WriteHeader(status int) {
	t.answers()
	t.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (t *turn) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// answers notes that the answer begins or goes on, or that there is none. In a long answer with HTTP/2 the
// client acknowledges what it has read, by frames that belong to no other request.
func (t *turn) answers() {
	t.conn.settle()
	switch t.stage {
	case turnWorks:
		t.conn.work(-1)
		t.wait(1)
	case turnAnswers:
		t.conn.work(0)
	}
	t.stage = turnAnswers
}

// wait changes the number of requests that wait for the client. A connection that has one at a time
// has no need to be limited.
func (t *turn) wait(by int) {
	if t.shared {
		t.conn.wait(by)
	}
}
