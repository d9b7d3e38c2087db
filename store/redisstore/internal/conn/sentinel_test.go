package conn_test

import (
	"slices"
	"testing"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store/redisstore/internal/conn"
)

// Messages as Sentinels of Redis 7 publish them.
func TestSuccessorIn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ channel, message, want string }{
		{"+switch-master", "weir 127.0.0.1 6379 127.0.0.1 6380", "127.0.0.1:6380"},
		{"+switch-master", "weir 2001:db8::1 6379 2001:db8::2 6380", "[2001:db8::2]:6380"},
		{"+switch-master", "other 127.0.0.1 6379 127.0.0.1 6380", ""},
		{"+switch-master", "weir 127.0.0.1 6379", ""},
		{"+failover-state-wait-promotion", "slave 127.0.0.1:6380 127.0.0.1 6380 @ weir 127.0.0.1 6379", "127.0.0.1:6380"},
		{"+failover-state-wait-promotion", "slave a.example:6380 a.example 6380 @ weir 127.0.0.1 6379", "a.example:6380"},
		{"+failover-state-wait-promotion", "slave 127.0.0.1:6380 127.0.0.1 6380 @ other 127.0.0.1 6379", ""},
		{"+failover-state-wait-promotion", "", ""},
		{"+sdown", "slave 127.0.0.1:6380 127.0.0.1 6380 @ weir 127.0.0.1 6379", ""},
	} {
		got, ok := conn.SuccessorIn(test.channel, test.message, "weir")
		if got != test.want || ok != (test.want != "") {
			t.Errorf("%s %q: got %q and %v, want %q", test.channel, test.message, got, ok, test.want)
		}
	}
}

// Sentinels that do not agree.
func TestNewestPrimary(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		want  string
		views []conn.View
	}{
		{"b", []conn.View{{1, "a"}, {2, "b"}, {2, "b"}}},
		{"b", []conn.View{{1, "a"}, {1, "a"}, {2, "b"}}},
		{"b", []conn.View{{1, "a"}, {1, "b"}, {1, "b"}}},
		{"a", []conn.View{{1, "a"}, {1, "b"}}},
		{"a", []conn.View{{9, "a"}, {10, "a"}, {0, "b"}, {0, "b"}, {0, "b"}}},
	} {
		if got := conn.Newest(test.views...); got != test.want {
			t.Errorf("%v: got %s, want %s", test.views, got, test.want)
		}
	}
}

// Sentinels that have not heard of a failover are asked first, and are as many as the others. Here
// they watch over other servers from the beginning.
func TestSentinelsCutOff(t *testing.T) {
	t.Parallel()
	behind, g := redistest.Sentinel(t), redistest.Sentinel(t)
	g.Sentinels[0].Must("SENTINEL", "FAILOVER", redistest.MasterName)
	for _, one := range g.Sentinels {
		redistest.Eventually(t, one.Addr()+" names the replica", func() bool {
			primary, err := conn.NewSentinels(t, redistest.MasterName, one.Addr()).Primary(t.Context())
			return err == nil && primary == g.Replica.Addr()
		})
	}
	s := conn.NewSentinels(t, redistest.MasterName, behind.Sentinels[0].Addr(), g.Sentinels[0].Addr())
	redistest.Eventually(t, "all Sentinels are asked, and the failover counts", func() bool {
		primary, err := s.Primary(t.Context())
		return err == nil && len(s.Addrs()) == 6 && primary == g.Replica.Addr()
	})
}

// The user may ask a Sentinel for the address of the primary, and nothing else.
func TestSentinelsWithFewRights(t *testing.T) {
	t.Parallel()
	g := redistest.Sentinel(t)
	var addrs []string
	for _, one := range g.Sentinels {
		one.Must("ACL", "SETUSER", "default", "-sentinel", "+sentinel|get-master-addr-by-name", "-subscribe")
		addrs = append(addrs, one.Addr())
	}
	s := conn.NewSentinels(t, redistest.MasterName, addrs...)
	redistest.Eventually(t, "a Sentinel names the primary", func() bool { // a busy machine is late with connections
		primary, err := s.Primary(t.Context())
		return err == nil && primary == g.Primary.Addr()
	})
}

// A Sentinel is gone, and the others have been told to forget it: nothing tries to connect to it any more.
func TestSentinelsForget(t *testing.T) {
	t.Parallel()
	g := redistest.Sentinel(t)
	s := conn.NewSentinels(t, redistest.MasterName, g.Sentinels[0].Addr())
	know := func(what string, want ...*redistest.Node) {
		t.Helper()
		redistest.Eventually(t, what, func() bool {
			_, err := s.Primary(t.Context())
			got := s.Addrs()
			return err == nil && len(got) == len(want) && !slices.ContainsFunc(want, func(n *redistest.Node) bool { return !slices.Contains(got, n.Addr()) })
		})
	}
	know("all Sentinels are known", g.Sentinels...)
	g.Sentinels[2].Kill()
	for _, one := range g.Sentinels[:2] {
		one.Must("SENTINEL", "RESET", redistest.MasterName)
	}
	know("the last Sentinel is forgotten", g.Sentinels[:2]...)
}
