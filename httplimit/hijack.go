package httplimit

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"runtime"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/guard"
)

// hold serves a request that holds something. The caller ends the call when hold has
// returned, unless the handler has taken over the connection: then the call ends when
// the connection is closed.
func hold(c *guard.Call, next http.Handler, w http.ResponseWriter, r *http.Request) {
	outer, _ := r.Context().Value(holdingKey{}).(*holding)
	h := &holding{w, c, outer}
	next.ServeHTTP(h, r.WithContext(context.WithValue(r.Context(), holdingKey{}, h)))
}

// holds reports whether c holds something.
func holds(c *guard.Call) bool {
	d := c.Decision()
	return d != nil && !d.Receipt.IsZero()
}

// holdingKey is the key of the innermost holding in the context of a request.
type holdingKey struct{}

// SetAttributes replaces attributes of the request that ctx belongs to, such as the
// number of tokens that it really cost. Rules with a hold are settled at the real cost
// when the request ends, in all middleware around the handler. It reports whether the request holds
// anything. ctx is that of the request, and SetAttributes must be called before the handler returns.
func SetAttributes(ctx context.Context, attributes ...weir.Attribute) bool {
	inner, _ := ctx.Value(holdingKey{}).(*holding)
	for h := inner; h != nil; h = h.outer {
		h.call.SetAttributes(attributes...)
	}
	return inner != nil
}

// holding is the writer of the answer to a request with holds.
type holding struct {
	http.ResponseWriter
	call  *guard.Call
	outer *holding // of the middleware around; nil: none
}

// Unwrap returns the writer below, for [http.ResponseController].
func (h *holding) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// Flush implements [http.Flusher].
func (h *holding) Flush() { _ = http.NewResponseController(h.ResponseWriter).Flush() }

// ReadFrom implements [io.ReaderFrom], so that files are sent by the system.
func (h *holding) ReadFrom(r io.Reader) (int64, error) { return io.Copy(h.ResponseWriter, r) }

// Hijack implements [http.Hijacker].
func (h *holding) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	conn := &endingConn{c, h.call.Detach()}
	runtime.AddCleanup(conn, func(end func()) { go end() }, conn.end) // package net closes a connection that a handler has lost
	return conn, rw, nil
}

// endingConn calls end each time it is closed; the first time counts.
type endingConn struct {
	net.Conn
	end func()
}

// Close closes the connection and ends the call.
func (c *endingConn) Close() error {
	defer c.end()
	return c.Conn.Close()
}
