package redisstore_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/redistest"
)

// Each call of a limiter with several limits is one script call, on a cluster, too: all of its
// counters of a key are in one slot.
func TestLimiterOfSeveralLimits(t *testing.T) {
	t.Parallel()
	single, cluster := redistest.Server(t), redistest.Cluster(t, 3, 0)
	for name, on := range map[string]struct {
		url   string
		nodes []*redistest.Node
	}{
		"server":  {"redis://" + single.Addr(), []*redistest.Node{single}},
		"cluster": {"redis+cluster://" + cluster.Addrs(), cluster.Masters},
	} {
		s := openURL(t, on.url+"?timeout=20s")
		connected(t, s, len(on.nodes))
		m := weir.MustLimiter(weir.Sliding(5, time.Hour), weir.WithStore(s), weir.WithName("posts"),
			weir.And(weir.Bucket(7, 24*time.Hour, 7)))
		calls := func() (sum int) {
			for _, n := range on.nodes {
				sum += commands(t, n, "evalsha")
			}
			return sum
		}
		before := calls()
		for i, step := range []struct {
			key        string
			want, used int64
			by         int
		}{{"ann", 3, 3, 0}, {"ann", 2, 5, 0}, {"ann", 0, 5, 0}, {"", 3, 3, 0}, {"{bob}", 3, 3, 0}} {
			got, r, err := m.AllowUpTo(t.Context(), step.key, 3)
			if err != nil || got != step.want || r.Used != step.used || r.Limit != step.by || r.Degraded {
				t.Errorf("%s, step %d: got %d, %+v, %v, want %+v", name, i, got, r, err, step)
			}
		}
		if got := calls() - before; got != 5 && name == "server" { // a node of the cluster may load the script meanwhile
			t.Errorf("%s: got %d calls of a script, want 5", name, got)
		}
		if err := m.Wait(t.Context(), "carl"); err != nil {
			t.Errorf("%s: got %v", name, err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
