package server

import (
	"errors"
	"runtime"
	"time"
)

// mostGivenUp is how many requests of a connection with HTTP/2 the client may give up
// before they are answered. Beyond it the connection is closed, unless the client has
// waited for more than that. Requests that are given up at once cost a client nothing.
// It is well below maxStreams: net/http starts that many handlers, and closes a
// connection itself, a second later, when its client has given up four times as many.
const mostGivenUp = 64

// givenUp notes that the client has given up a request.
func (g *limitedConn) givenUp() {
	if n := g.given.Add(1); n > mostGivenUp && n > g.kept.Load() {
		g.limiter.waitsMu.Lock()
		defer g.limiter.waitsMu.Unlock()
		g.sendAway()
	}
}

// mostWaiting is how many requests of HTTP/2 may wait for their clients at the same time, over all
// connections of a listener: each takes some 20 KiB, and a connection can have a hundred. Beyond it
// a connection with some of them is closed.
const mostWaiting = 4096

// wait changes the number of requests of HTTP/2 that wait for the client.
func (g *limitedConn) wait(by int) {
	l := g.limiter
	l.waitsMu.Lock()
	defer l.waitsMu.Unlock()
	g.waits += by
	if g.sentAway.Load() {
		l.left += by
		return
	}
	if l.waits += by; l.waits > l.mostWaits {
		l.closeWaiting()
	}
}

// waiting returns how many requests of HTTP/2 of g wait for the client, unless it was sent away. It needs the limiter's waitsMu.
func (g *limitedConn) waiting() int64 {
	if g.sentAway.Load() {
		return 0
	}
	return int64(g.waits)
}

// closeWaiting closes a connection with requests that wait for the client, of the share that crowds: of callers who were never
// admitted the one that has waited longest, else the one with most of them. It needs waitsMu.
func (c *connLimiter) closeWaiting() {
	c.mu.Lock()
	crowd := c.crowding(int64(c.mostWaits), (*limitedConn).waiting)
	var first *limitedConn
	for g := range c.open {
		switch {
		case g.share != crowd || g.waiting() == 0:
		case first == nil, crowd == nil && g.since.Load() < first.since.Load(), crowd != nil && g.waits > first.waits:
			first = g
		}
	}
	c.mu.Unlock()
	if first != nil {
		first.sendAway()
	}
}

// sendAway closes g because of its requests. It needs the limiter's waitsMu.
func (g *limitedConn) sendAway() {
	if g.sentAway.CompareAndSwap(false, true) {
		g.limiter.waits -= g.waits
		g.limiter.left += g.waits
		g.limiter.shed()
		_ = g.Conn.Close() // its server notices
	}
}

// mostBeginning is how many requests of HTTP/2 may be in what was read from connections without an admitted caller, besides
// those that wait for their clients. Each gets a goroutine, which takes more memory than a thousand of its bytes.
const mostBeginning = 4096

// smallestRequest is about the least bytes of a request of HTTP/2.
const smallestRequest = 12

// patience is how long a connection without an admitted caller waits until its requests can begin. Then it is closed.
const patience = time.Second

var errCrowded = errors.New("too many requests of callers who were never admitted")

// begin waits until the requests in the n bytes that were read can begin. It reports whether they can: otherwise g is closed.
func (g *limitedConn) begin(n int) bool {
	const pause = 10 * time.Millisecond
	n = min(n/smallestRequest+1, maxStreams)
	l := g.limiter
	for range patience / pause {
		l.waitsMu.Lock()
		closed, fits := g.closed, l.waits+l.left+l.beginning+n <= l.mostWaits+mostBeginning
		if fits && !closed {
			l.beginning += n
			g.beginning.Store(int64(n))
		}
		l.waitsMu.Unlock()
		if fits || closed {
			return !closed
		}
		time.Sleep(pause)
	}
	l.shed()
	_ = g.Conn.Close() // its server notices
	return false
}

// begun notes that the requests in what was read have goroutines.
func (g *limitedConn) begun() {
	if g.beginning.Load() == 0 {
		return
	}
	runtime.Gosched() // they go first, and are counted as waiting, or have ended, by then
	g.limiter.waitsMu.Lock()
	g.limiter.beginning -= int(g.beginning.Swap(0))
	g.limiter.waitsMu.Unlock()
}
