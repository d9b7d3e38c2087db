package grpcserver

import (
	"encoding/binary"
	"net"
	"testing"
	"time"
)

// A client that takes a part of its answers from time to time is not late, and neither is
// one that has nothing to take.
func TestAnswersTakenSlowly(t *testing.T) {
	g := &guest{inbox: &inbox{}}
	now := time.Unix(1e9, 0)
	patrol := func(want bool) {
		t.Helper()
		now = now.Add(4 * time.Second)
		if got := g.idle(now); got != want {
			t.Errorf("after %v: got late %t, want %t", now.Sub(time.Unix(1e9, 0)), got, want)
		}
	}
	for range 10 {
		patrol(false)
	}
	g.begin()
	g.sending.Add(1)
	for range 10 {
		g.written.Add(1)
		for range 3 {
			patrol(false)
		}
	}
	g.sending.Add(-1)
	for range 10 {
		patrol(false)
	}
	g.streams.begin(1, now) // the call that has begun
	g.streams.begin(3, now) // one whose handler has ended
	for range 3 {
		patrol(false)
	}
	patrol(true)
	g.streams.end(3)
	patrol(false)
}

// Calls whose clients have waited for them, as long as a deadline, are not held against
// the connection, however many they are: the store may be slow. Calls that are given up at
// once are.
func TestDeadlines(t *testing.T) {
	frame := func(kind byte, stream uint32) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{0, 0, 0, kind, 0}, stream), nil...)
	}
	for _, tc := range []struct {
		after  time.Duration
		calls  int
		closed bool
	}{
		{20 * time.Millisecond, 10_000, false},
		{0, mostGivenUp, false},
		{0, mostGivenUp + 1, true},
	} {
		conn, client := net.Pipe()
		t.Cleanup(func() { _ = client.Close() })
		g := &guest{inbox: &inbox{}, conn: conn}
		c := &incoming{Conn: conn, guest: g}
		now := time.Unix(1e9, 0)
		for i := range tc.calls {
			stream := uint32(2*i + 1)
			c.scan(frame(headersFrame, stream), now)
			now = now.Add(tc.after)
			c.scan(frame(resetFrame, stream), now)
			c.scan(frame(resetFrame, stream), now) // of a call that has ended
		}
		if g.gone.Load() != tc.closed || g.streams.len() != 0 {
			t.Errorf("%d calls, given up after %v: got closed %t and %d open calls, want %t and none", tc.calls, tc.after, g.gone.Load(), g.streams.len(), tc.closed)
		}
	}
}
