package server

import (
	"net/http"
	"sync"
	"time"
)

// incoming limits the bytes that all connections of a listener have sent and that belong to no request yet, which are parts
// of TLS handshakes and of the heads of requests, and those of the heads of requests that are not over. Clients need no token
// for that, and thousands of them, each within the limits of one connection, would take gigabytes. Beyond the limit a
// connection is closed, of the callers who crowd: the one whose bytes, times the time for which they have waited, are most.
// So those of clients that send what they have at once are spared.
type incoming struct {
	most  int64                // bytes of all connections; 0: no limit; set before the first connection
	now   func() time.Duration // set before the first connection
	mu    sync.Mutex
	total int64 // of the connections with more than smallHead; guarded by mu
}

// byteMemory is how much memory a byte takes at most that is counted by [incoming]: about four bytes in buffers that double
// and in what these leave to the garbage collector, and thirteen or more in a head of many short fields.
const byteMemory = 16

// smallHead is how many bytes of a connection, or of a head, are not counted by [incoming], so that most requests do not take
// its lock.
const smallHead = 2 << 10

// fieldMemory is about how much memory a field of a head takes besides its name and its value, in bytes.
const fieldMemory = 100

// sizeOfHead returns how many bytes the head of r counts as.
func sizeOfHead(r *http.Request) int64 {
	n := 3 * len(r.RequestURI) // whose parts are kept twice
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v) + fieldMemory
		}
	}
	return int64(n) / byteMemory
}

// hold changes the bytes of the heads of requests that are not over.
func (g *limitedConn) hold(head, sign int64) {
	in := &g.limiter.incoming
	in.mu.Lock()
	defer in.mu.Unlock()
	if g.ended {
		return
	}
	g.count(&g.held, g.held+sign*head)
}

// Read implements [net.Conn].
func (g *limitedConn) Read(p []byte) (int, error) {
	g.begun()
	n, err := g.Conn.Read(p)
	if n == 0 || g.limiter.incoming.most == 0 {
		return n, err
	}
	if g.speaksHTTP2(p[:n]) && g.caller.Load() == nil && !g.begin(n) {
		return 0, errCrowded
	}
	g.arrive(int64(n))
	return n, err
}

// arrive counts n bytes that have arrived.
func (g *limitedConn) arrive(n int64) {
	if g.arrived.Add(n) <= smallHead {
		return
	}
	in := &g.limiter.incoming
	in.mu.Lock()
	defer in.mu.Unlock()
	if n = g.arrived.Load(); n <= smallHead || g.ended {
		return // settled or closed meanwhile
	}
	g.count(&g.counted, n)
}

// count makes n the bytes of a kind of g, and closes connections while there are too many of all. It needs the mu of [incoming].
func (g *limitedConn) count(kind *int64, n int64) {
	in := &g.limiter.incoming
	if n < *kind || g.incoming() == 0 {
		g.progress = in.now()
	}
	in.total += n - *kind
	*kind = n
	for in.total > in.most && g.limiter.closeMostIncoming(g) {
	}
}

// incoming returns the bytes of g that [incoming] counts, whose mu it needs.
func (g *limitedConn) incoming() int64 { return g.counted + g.held }

// lingers returns the bytes of g times the time for which it has sent nothing that was complete. It needs the mu of [incoming].
func (g *limitedConn) lingers(now time.Duration) float64 {
	return float64(g.incoming()) * float64(now-g.progress)
}

// settle notes that what has arrived belongs to requests.
func (g *limitedConn) settle() {
	if g.arrived.Swap(0) <= smallHead {
		return
	}
	in := &g.limiter.incoming
	in.mu.Lock()
	defer in.mu.Unlock()
	g.count(&g.counted, 0)
}

// Verified notes that the handshake with TLS, which has chosen a protocol, takes no memory any more.
func (g *limitedConn) Verified(protocol string) {
	g.settle()
	if protocol == "h2" {
		g.preface = len(preface)
	}
}

// preface is what HTTP/2 without TLS begins with, and no request of HTTP/1 does.
const preface = "PRI "

// speaksHTTP2 reports whether b, which has arrived, is HTTP/2.
func (g *limitedConn) speaksHTTP2(b []byte) bool {
	for i := 0; i < len(b) && g.preface >= 0 && g.preface < len(preface); i++ {
		if g.preface++; b[i] != preface[g.preface-1] {
			g.preface = -1
		}
	}
	return g.preface == len(preface)
}

// endIncoming counts nothing more of g, which is closed. It needs the mu of [incoming].
func (g *limitedConn) endIncoming() {
	g.ended = true
	g.limiter.incoming.total -= g.incoming()
	g.counted, g.held = 0, 0
}

// closeMostIncoming closes the connection that lingers most, of those of the share that crowds, or reader, if that was removed
// from those that are open. It reports whether there was one. It needs the mu of [incoming].
func (c *connLimiter) closeMostIncoming(reader *limitedConn) bool {
	now := c.incoming.now()
	var most *limitedConn
	c.mu.Lock()
	if _, open := c.open[reader]; !open && !reader.ended {
		most = reader
	} else {
		crowd := c.crowding(c.incoming.most, (*limitedConn).incoming)
		for g := range c.open {
			if g.share == crowd && g.incoming() > 0 && (most == nil || g.lingers(now) > most.lingers(now)) {
				most = g
			}
		}
	}
	c.mu.Unlock()
	if most == nil {
		return false
	}
	most.endIncoming()
	c.shed()
	_ = most.Conn.Close() // its server notices
	return true
}
