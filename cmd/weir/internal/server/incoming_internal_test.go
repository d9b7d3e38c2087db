package server

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
)

// connectTo returns a connection that l limits.
func connectTo(t *testing.T, l *connLimiter) *limitedConn {
	near, far := net.Pipe()
	t.Cleanup(func() { far.Close() })
	g := &limitedConn{Conn: near, limiter: l}
	l.admit(g)
	return g
}

// What has waited longest makes room, so that strangers with parts of heads keep nobody away who sends a head, or a body, at once.
func TestStrangersMakeRoom(t *testing.T) {
	t.Parallel()
	sheds, now := 0, time.Duration(0)
	l := newConnLimiter(nil, 0, "", func() { sheds++ })
	l.incoming.most, l.incoming.now = 100<<10, func() time.Duration { return now }
	connect := func(n int64) *limitedConn {
		g := connectTo(t, l)
		g.arrive(n)
		return g
	}
	stream := connect(0)
	stream.Admit(&access.Holder{Name: "reader"})
	stream.hold(5000, 1) // the head of a request that has an answer for hours
	for range 48 {
		connect(2100)
		now += time.Millisecond
	}
	honest := connect(1000) // an idle connection
	now += time.Minute
	for range 10 {
		honest.arrive(60 << 10)
		if honest.ended {
			t.Fatal("the client that sends all at once was closed")
		}
		honest.settle()
		honest.hold(30<<10, 1)
		now += time.Millisecond
		honest.hold(30<<10, -1)
		connect(2100)
		now += time.Second
	}
	if stream.ended {
		t.Error("the connection of a caller who was admitted was closed")
	}
	if sheds < 20 || l.incoming.total > l.incoming.most {
		t.Errorf("got %d strangers closed, and %d bytes", sheds, l.incoming.total)
	}
}

// Of the connections with requests of HTTP/2 that wait for their clients, those of strangers make room first, if they have more
// than an eighth, and else those of the callers who share most such requests.
func TestWaitingRequestsMakeRoom(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		honest int            // requests of a caller
		others *access.Holder // each of whose connections has two
	}{
		"strangers":    {13, nil},
		"other caller": {3, &access.Holder{Name: "evil"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newConnLimiter(nil, 0, "", func() {})
			l.mostWaits = 20
			honest := connectTo(t, l)
			honest.Admit(&access.Holder{Name: "shop"})
			honest.wait(test.honest)
			away := 0
			var others []*limitedConn
			for i := range 9 {
				g := connectTo(t, l)
				if g.since.Store(int64(i)); test.others != nil {
					g.Admit(test.others)
				}
				g.wait(2)
				others = append(others, g)
			}
			for _, g := range others {
				if g.sentAway.Load() {
					away++
				}
			}
			if honest.sentAway.Load() || away != (test.honest+2*len(others)-l.mostWaits+1)/2 {
				t.Errorf("got %d away, and the honest caller %t", away, honest.sentAway.Load())
			}
			if test.others == nil && (!others[0].sentAway.Load() || others[len(others)-1].sentAway.Load()) {
				t.Error("want those away that have waited longest")
			}
		})
	}
}

// A new connection, whose caller is not admitted yet, makes no room for what one caller holds.
func TestNewConnectionsMakeNoRoom(t *testing.T) {
	t.Parallel()
	l := newConnLimiter(nil, 0, "", func() {})
	l.mostWaits = 20
	l.incoming.most, l.incoming.now = 100<<10, func() time.Duration { return time.Second }
	var crowd []*limitedConn
	for range 10 {
		g := connectTo(t, l)
		g.Admit(&access.Holder{Name: "crowd"})
		g.wait(2)
		g.arrive(10 << 10)
		crowd = append(crowd, g)
	}
	honest := connectTo(t, l)
	honest.wait(1)
	honest.arrive(5 << 10)
	away, ended := 0, 0
	for _, g := range crowd {
		if g.sentAway.Load() {
			away++
		}
		if g.ended {
			ended++
		}
	}
	if honest.sentAway.Load() || honest.ended || away != 1 || ended != 1 {
		t.Errorf("the new connection was sent away: %t, ended: %t; of the crowd %d and %d, want one", honest.sentAway.Load(), honest.ended, away, ended)
	}
}

// What strangers send is read while the requests in it can begin.
func TestRequestsOfStrangersBegin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sheds := 0
		l := newConnLimiter(nil, 0, "", func() { sheds++ })
		l.mostWaits = 0
		begin := func() (*limitedConn, chan bool) {
			g, began := connectTo(t, l), make(chan bool, 1)
			go func() { began <- g.begin(64 << 10) }() // a hundred, which is the most at a time
			return g, began
		}
		first, began := begin()
		<-began
		for range mostBeginning/maxStreams - 1 {
			if _, began := begin(); !<-began {
				t.Fatal("too few requests may begin")
			}
		}
		_, next := begin()
		time.Sleep(patience / 2)
		first.begun()
		if !<-next {
			t.Error("the requests of another connection have begun, and those of the next may not")
		}
		if _, last := begin(); <-last || sheds != 1 {
			t.Errorf("got %d connections closed, want that of too many requests", sheds)
		}
	})
}

// A connection that is closed while it waits to begin requests begins none: they would count for ever.
func TestClosedConnectionsBeginNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newConnLimiter(nil, 0, "", func() {})
		g, began := connectTo(t, l), make(chan bool, 1)
		l.beginning = mostBeginning + mostWaiting
		go func() { began <- g.begin(64 << 10) }()
		synctest.Wait()
		_ = g.Close()
		l.waitsMu.Lock()
		l.beginning = 0
		l.waitsMu.Unlock()
		if <-began || l.beginning != 0 {
			t.Errorf("got %d requests that begin, want none", l.beginning)
		}
	})
}

// Only HTTP/2 has several requests at a time: however it arrives, it is told from other protocols.
func TestSpeaksHTTP2(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]bool{
		"PRI * HTTP/2.0": true, "POST / HTTP/1.1": false, "PR": false, "PRINT / HTTP/1.1": false, "\x16\x03\x01PRI ": false, "GET /PRI ": false,
	} {
		whole, parts := &limitedConn{}, &limitedConn{}
		got := parts.speaksHTTP2(nil)
		for i := range sent {
			got = parts.speaksHTTP2([]byte(sent[i : i+1]))
		}
		if all := whole.speaksHTTP2([]byte(sent)); all != want || got != want {
			t.Errorf("%q: got %v at once and %v byte by byte, want %v", sent, all, got, want)
		}
	}
	overTLS := &limitedConn{limiter: newConnLimiter(nil, 0, "", func() {})}
	overTLS.speaksHTTP2([]byte("\x16\x03\x01"))
	if overTLS.Verified("h2"); !overTLS.speaksHTTP2([]byte("\x17")) {
		t.Error("HTTP/2 over TLS is not known")
	}
}
