package redisstore_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// opening opens a store that is closed with the test.
func opening(t testing.TB, url string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// openURL opens a store, and waits until it is connected or knows why it cannot be: Open waits two seconds for the first
// attempt, and a busy machine may need more, and several attempts.
func openURL(t testing.TB, url string) *redisstore.Store {
	t.Helper()
	s := opening(t, url)
	redistest.Eventually(t, "attempts to connect have ended", func() bool { return redisstore.Settled(s) })
	return s
}

// connected waits until s has connections to as many nodes, all that it knows, and sends
// calls to them: on a busy machine it may be opened without. A node of a cluster gets
// calls a little later than connections.
func connected(t testing.TB, s *redisstore.Store, nodes int) {
	t.Helper()
	redistest.Eventually(t, "all nodes are connected", func() bool {
		all := s.Nodes()
		return len(all) == nodes && redisstore.Ready(s)
	})
}

// clusterURL returns the URL of c for these tests.
func clusterURL(c *redistest.Nodes) string {
	return fmt.Sprintf("redis+cluster://%s?timeout=%v", c.Addrs(), patience)
}

// keysOn returns keys on the nodes of a new cluster, one on each.
func keysOn(nodes ...*redistest.Node) []string {
	keys := make([]string, len(nodes))
	for i := range keys {
		for n := 0; keys[i] == ""; n++ {
			key := fmt.Sprint("k", n)
			if redisstore.SlotOf([]byte("{"+key+"}"))*len(nodes)/redistest.Slots == i {
				keys[i] = key
			}
		}
	}
	return keys
}

// onCluster returns a store on a new cluster of some primaries, which are connected, and a key on each of them.
func onCluster(t testing.TB, primaries int) (c *redistest.Nodes, s *redisstore.Store, keys []string) {
	t.Helper()
	c = redistest.Cluster(t, primaries, 0)
	s = openURL(t, "redis+cluster://"+c.Addrs()+"?timeout=20s")
	connected(t, s, primaries)
	return c, s, keysOn(c.Masters...)
}

// A cluster keeps the same contract as one server, although the keys of one call
// are in several slots.
func TestContractOnCluster(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 3, 0)
	url := "redis+cluster://" + c.Addrs() + "?timeout=20s"
	var stores atomic.Int64
	storetest.Run(t, func(t testing.TB) storetest.Opened {
		var now atomic.Int64
		s := openURL(t, fmt.Sprint(url, "&prefix=c", stores.Add(1)))
		connected(t, s, 3)
		redisstore.SetClock(s, func() window.Instant { return window.Instant(now.Load()) })
		return storetest.Opened{Store: s, Set: func(i window.Instant) { now.Store(int64(i)) }}
	})
}

// A cluster that is not complete has no nodes in use until one of them serves slots: it is unavailable.
func TestClusterWithoutSlots(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 1, 0)
	c.Masters[0].Must("CLUSTER", "FLUSHSLOTS")
	s := openURL(t, "redis+cluster://"+c.Addrs()+"?timeout=20s")
	if all := s.Nodes(); len(all) > 0 {
		t.Errorf("without slots: got nodes %v, want none", all)
	}
	c.Masters[0].Must("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	connected(t, s, 1)
}

// A call with keys in several slots is sent at the same time as the others of its group, so calls that share a
// key with it, before it or after it, are in other groups.
func TestCallsThatShareKeysAreInOrder(t *testing.T) {
	t.Parallel()
	_, s, _ := onCluster(t, 1)
	var calls []store.Call
	for _, keys := range [][]string{{"a"}, {"a"}, {"c"}, {"a", "b"}, {"c"}, {"a"}, {"b"}, {"a"}} {
		var ops []store.Op
		for _, key := range keys {
			ops = append(ops, hourly(1, "rule", key))
		}
		calls = append(calls, store.Call{Verb: store.Take, Ops: ops})
	}
	if got, want := fmt.Sprint(redisstore.WavesOf(s, calls)), "[[0 1 2 4] [3] [5 6 7]]"; got != want {
		t.Errorf("got the groups %s, want %s", got, want)
	}
}

// An export while slots move ends with an error: keys that have moved to a node that was scanned before would be
// missing, and those that have moved from there would be found twice.
func TestExportWhileSlotsMove(t *testing.T) {
	t.Parallel()
	c, s, keys := onCluster(t, 2)
	op := hourly(1000, "rule", keys[0])
	page := func(after []byte) (next []byte, found int, err error) {
		next, err = s.Keys(t.Context(), &op, after, func([]byte, window.State, window.Instant) { found++ })
		return next, found, err
	}
	for i, key := range keys {
		if err := store.Do(t.Context(), s, store.Take, []store.Op{hourly(1000, "rule", key)}); err != nil {
			t.Fatal(err)
		}
		next, _, err := page(nil)
		if err != nil || next == nil {
			t.Fatalf("got %q, %v, want the position of the second node", next, err)
		}
		c.Move(redisstore.SlotOf([]byte("{"+key+"}")), c.Masters[1-i])
		for err == nil && next != nil {
			next, _, err = page(next)
		}
		if !errors.Is(err, store.ErrMoved) {
			t.Errorf("key %d: got error %v, want %v", i, err, store.ErrMoved)
		}
	}
	redistest.Eventually(t, "an export of the nodes as they are finds each key once", func() bool {
		var next []byte
		for all := 0; ; {
			after, found, err := page(next)
			if all += found; err != nil || after == nil {
				return err == nil && all == len(keys)
			}
			next = after
		}
	})
}

// A store that is opened while the slot of the secret is on its way to another node finds the secret there.
func TestSecretOfASlotThatMoves(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 2, 0)
	first := openURL(t, "redis+cluster://"+c.Addrs()+"?timeout=20s")
	connected(t, first, 2)
	secrets := func(s *redisstore.Store) (list [][16]byte) {
		redistest.Eventually(t, "the store knows the secret", func() bool {
			list = s.Secrets(false)
			return len(list) > 0
		})
		return list
	}
	want := secrets(first)
	const name = "weir:secret"
	slot := redisstore.SlotOf([]byte(name))
	from, to := c.Owner(slot), c.Masters[0]
	if from == to {
		to = c.Masters[1]
	}
	to.Must("CLUSTER", "SETSLOT", fmt.Sprint(slot), "IMPORTING", from.ID())
	from.Must("CLUSTER", "SETSLOT", fmt.Sprint(slot), "MIGRATING", to.ID())
	host, port, _ := net.SplitHostPort(to.Addr())
	from.Must("MIGRATE", host, port, name, "0", "5000")
	second := openURL(t, "redis+cluster://"+c.Addrs()+"?timeout=20s")
	if got := secrets(second); !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}
