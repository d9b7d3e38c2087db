package redisstore_test

import (
	"testing"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
)

func TestNodes(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://:unused@"+n.Addr()+"?timeout=5s&password_file=/dev/null")
	op := hourly(10, "rule", "k")
	take(t, s, op)
	if got := s.Nodes()[0]; got.Addr != n.Addr() || got.Unavailable || got.InFlight != 0 || outages(got) != 0 {
		t.Errorf("in order: got %+v", got)
	}
	n.Kill()
	redistest.Eventually(t, "the circuit breaker is open", func() bool {
		_ = store.Do(t.Context(), s, store.Check, []store.Op{op})
		return s.Nodes()[0].Unavailable && s.Nodes()[0].Interruptions == 1
	})
	_ = store.Do(t.Context(), s, store.Check, []store.Op{op})
	got := s.Nodes()[0]
	if outages(got) < 1 || got.Interruptions != 1 {
		t.Errorf("a dead node: got %+v, want one opening of the circuit breaker, and outages by reason", got)
	}
}

// outages returns the number of the outages of n, for whatever reason.
func outages(n redisstore.Node) (sum int64) {
	for _, count := range n.Outages {
		sum += count
	}
	return sum
}
