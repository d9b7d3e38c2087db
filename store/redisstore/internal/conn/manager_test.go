package conn_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store/redisstore/internal/conn"
	"github.com/weirhq/weir/store/remote"
)

// Each time in which a node is unavailable is passed on with its start and its end, also
// one that is over when the manager runs. One that begins before the end of another
// was passed on belongs to it.
func TestReportsShortOutages(t *testing.T) {
	t.Parallel()
	var got []bool
	var reason error
	m := conn.NewManager(func(c remote.Change) {
		if got = append(got, c.Err != nil); c.Err != nil {
			reason = c.Err.Err
		}
	})
	const late, broken = "the server has not answered lately", "the connection has broken"
	for _, step := range []struct {
		// t: the breaker opens, a: the node answers, l: the connection is lost, c: there is
		// a new one, r: the manager runs
		do     string
		want   int // changes so far
		reason string
	}{
		{do: "r"}, {do: "ta"},
		{"r", 2, late}, {"r", 2, late},
		{"t", 2, late}, {"r", 3, late}, {"r", 3, late}, {"at", 3, late}, {"r", 3, late},
		{"a", 3, late}, {"r", 4, late}, {"r", 4, late},
		{"lc", 4, late}, {"r", 6, broken}, {"r", 6, broken},
		{"l", 6, broken}, {"r", 7, broken}, {"cr", 8, broken}, {"r", 8, broken},
	} {
		for _, c := range step.do {
			switch c {
			case 't':
				m.Trip()
			case 'a':
				m.Answered()
			case 'l':
				m.Lose()
			case 'c':
				m.Connect()
			default:
				m.Report()
			}
		}
		if step.want > 0 && reason.Error() != step.reason {
			t.Errorf("after %s: got the reason %v, want %s", step.do, reason, step.reason)
		}
		if len(got) != step.want {
			t.Fatalf("after %s: got %d changes, want %d", step.do, len(got), step.want)
		}
	}
	for i, out := range got {
		if out != (i%2 == 0) {
			t.Errorf("change %d: got unavailable %v, want starts and ends in turns", i, out)
		}
	}
}

// The primary has changed when a connection is made again: none stays at the old one.
func TestConnectionsMoveTogether(t *testing.T) {
	t.Parallel()
	before, after := redistest.Server(t), redistest.Server(t)
	var primary atomic.Value
	primary.Store(before.Addr())
	f := conn.Follow(t, func() string { return primary.Load().(string) })
	at := func(n *redistest.Node) int { return strings.Count(fmt.Sprint(n.Must("CLIENT", "LIST")), "name=weir ") }
	redistest.Eventually(t, "the connections are at the first primary", func() bool { return at(before) == 2 && f.Connected() })
	primary.Store(after.Addr())
	f.Lose()
	redistest.Eventually(t, "the connections are at the second primary", func() bool { return at(before) == 0 && at(after) == 2 })
}

// A node that a call in flight makes while the servers are being closed keeps no goroutine.
func TestNodeAfterClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wait, end := conn.NodeAfterClose()
		ended := make(chan struct{})
		go func() { wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Error("the goroutine of the node has not ended")
		}
		end()
	})
}
