package redisstore_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/window"
)

// Sentinels put the replica in the primary's place. Hits that had not reached the
// replica are lost, and as many may be admitted again.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	g := redistest.Sentinel(t)
	s := openURL(t, fmt.Sprintf("redis+sentinel://%s/%s?timeout=%v", g.Addrs(), redistest.MasterName, patience))
	op := hourly(quota, "rule", "k")
	d := drive(t, s, 16, op)
	d.answers(200)
	began := time.Now()
	g.Primary.Kill()
	d.fails(100)
	d.answers(200)
	took := time.Since(began)
	d.end()
	admitted, kept := d.admitted.Load(), used(t, s, op)
	if kept > most(admitted) {
		t.Errorf("used: got %d, want at most the %d admitted and few more", kept, admitted)
	}
	t.Logf("%d admitted, %d kept; answers again after %v, longest wait %v",
		admitted, kept, took, time.Duration(d.longest.Load()))
}

// Sentinels exchange a primary that lives, on command: the store follows them
// although nothing has failed.
func TestSentinelSwitch(t *testing.T) {
	t.Parallel()
	g := redistest.Sentinel(t)
	s := openURL(t, fmt.Sprintf("redis+sentinel://%s/%s?timeout=%v", g.Addrs(), redistest.MasterName, patience))
	op := hourly(quota, "rule", "k")
	d := drive(t, s, 16, op)
	d.answers(200)
	g.Sentinels[0].Must("SENTINEL", "FAILOVER", redistest.MasterName)
	redistest.Eventually(t, "the replica leads", func() bool { return g.Master() == g.Replica.Addr() })
	redistest.Eventually(t, "the store uses the new primary", func() bool {
		clients, _ := g.Replica.Do("CLIENT", "LIST") // Sentinels break connections off when they switch
		return strings.Contains(fmt.Sprint(clients), "name=weir ")
	})
	d.answers(200)
	d.end()
	if got := used(t, s, op); got < 200 {
		t.Errorf("used after the switch: got %d, want at least the last 200", got)
	}
	t.Logf("%d admitted, %d kept, %d outages", d.admitted.Load(), used(t, s, op), d.outages.Load())
}

// Behind one address for the primary, a failover in which the old primary lives on is followed: connections
// that lead to it stay open, and new ones lead to the new primary.
func TestFailoverBehindAnAddress(t *testing.T) {
	t.Parallel()
	old := redistest.Server(t)
	replica := old.Replica()
	endpoint := redistest.Through(t, old)
	s := openURL(t, fmt.Sprintf("redis://%s?timeout=%v", endpoint.Addr(), patience))
	d := drive(t, s, 16, hourly(quota, "rule", "k"))
	d.answers(200)
	endpoint.To(replica)
	replica.Must("REPLICAOF", "NO", "ONE")
	host, port, err := net.SplitHostPort(replica.Addr())
	if err != nil {
		t.Fatal(err)
	}
	old.Must("REPLICAOF", host, port)
	d.fails(100)
	d.answers(200)
	d.end()
}

// Behind a load balancer that has sent some connections to a replica, these are left for the primary, whichever calls
// they are for.
func TestConnectionsLeaveAReplica(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, url string
		delay     time.Duration
		all       int
	}{
		{"that distant calls share", "", 10 * time.Millisecond, 4},
		{"for calls that wait for replicas", "&wait_replicas=1", 0, 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			primary := redistest.Server(t)
			replica := primary.Replica()
			balancer := redistest.Through(t, primary)
			s := openURL(t, "redis://"+balancer.Addr()+"?timeout=20s"+test.url)
			balancer.Delay(test.delay)
			redistest.Eventually(t, "all connections are there", func() bool { return len(connections(t, primary)) >= test.all })
			balancer.To(replica)
			for _, c := range connections(t, primary)[1:] {
				primary.Must("CLIENT", "KILL", "ID", ids.FindStringSubmatch(c)[1])
			}
			redistest.Eventually(t, "only the first leads to the primary", func() bool {
				return len(connections(t, primary)) == 1 && len(connections(t, replica)) >= test.all-1
			})
			balancer.To(primary)
			call := func() error { return store.Do(t.Context(), s, store.Take, []store.Op{hourly(quota, "rule", "k")}) }
			redistest.Eventually(t, "a call meets the replica", func() bool {
				err := call()
				return err != nil && strings.Contains(err.Error(), "READONLY")
			})
			redistest.Eventually(t, "all connections lead to the primary", func() bool {
				_ = call()
				return len(connections(t, primary)) >= test.all && len(connections(t, replica)) == 0
			})
		})
	}
}

// A node of a 3+3 cluster dies. Keys on the others are answered all the time,
// those of the dead one again when its replica has taken over.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 3, 3)
	s := openURL(t, fmt.Sprintf("redis+cluster://%s?timeout=500ms", c.Addrs())) // a busy machine is no outage
	var all []*traffic
	keys := keysOn(c.Masters...)
	for _, key := range keys {
		all = append(all, drive(t, s, 8, hourly(quota, "rule", key)))
	}
	for _, d := range all {
		d.answers(100)
	}
	began := time.Now()
	c.Masters[0].Kill()
	all[0].fails(50)
	before := all[1].outages.Load() + all[2].outages.Load()
	all[0].answers(100)
	took := time.Since(began)
	// One or two may be the machine's, which is busy.
	if met := all[1].outages.Load() + all[2].outages.Load() - before; met > all[0].outages.Load()/10 {
		t.Errorf("outages of the nodes that live: got %d, and %d of the dead one", met, all[0].outages.Load())
	}
	for i, d := range all {
		d.answers(100)
		d.end()
		admitted, kept := d.admitted.Load(), used(t, s, hourly(quota, "rule", keys[i]))
		if kept > most(admitted) || i > 0 && kept < admitted {
			t.Errorf("node %d: got %d used, want the %d admitted and few more", i, kept, admitted)
		}
		t.Logf("node %d: %d admitted, %d kept, %d outages, longest wait %v", i, admitted, kept,
			d.outages.Load(), time.Duration(d.longest.Load()))
	}
	t.Logf("answers again after %v", took)
}

// A node is cut off from the rest of its cluster, where another one serves its slots now. It answers
// clients, and still names itself as the one that serves them. The store asks it first, but follows
// the rest.
func TestClusterNodeCutOff(t *testing.T) {
	t.Parallel()
	alone := func() *redistest.Node { return redistest.Cluster(t, 1, 0, "--cluster-node-timeout", "500").Masters[0] }
	a, b := alone(), alone()
	if a.Addr() > b.Addr() { // the store asks the first by address
		a, b = b, a
	}
	dir := a.Must("CONFIG", "GET", "dir").([]any)[1].(string)
	nodes := fmt.Sprintf("%s 127.0.0.1:0@0 myself,master - 0 0 1 connected 0-8191\n"+
		"%s %s@1 master - 0 0 2 connected 8192-16383\n"+
		"vars currentEpoch 2 lastVoteEpoch 0\n", a.ID(), b.ID(), b.Addr()) // no node listens on port 1
	a.Kill()
	if err := os.WriteFile(filepath.Join(dir, "nodes.conf"), []byte(nodes), 0o600); err != nil {
		t.Fatal(err)
	}
	a.Restart()
	s := openURL(t, fmt.Sprintf("redis+cluster://%s,%s?timeout=20s", a.Addr(), b.Addr()))
	keys := keysOn(a, b)
	redistest.Eventually(t, "the other node alone answers for all keys", func() bool { // at first the node may not know that it is cut off
		for _, key := range keys {
			if store.Do(t.Context(), s, store.Take, []store.Op{hourly(quota, "rule", key)}) != nil {
				return false
			}
		}
		nodes := s.Nodes()
		return len(nodes) == 1 && nodes[0].Addr == b.Addr()
	})
}

// A slot moves from node to node, key by key, while its keys are counted: no
// hit is lost, none is counted twice.
func TestSlotMoves(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 3, 0)
	s := openURL(t, clusterURL(c))
	// Two rules in one slot, and another one in its own slot.
	a, b, beside := hourly(quota, "a", "k"), hourly(quota, "b", "k"), hourly(quota, "c", "other")
	slot := redisstore.SlotOf([]byte("{k}"))
	for i := range 50 { // that the slot has keys to move
		op := hourly(quota, fmt.Sprint("more", i), "k")
		redistest.Eventually(t, "the slot gets a key", func() bool { // a busy machine is late with connections and calls
			return store.Do(t.Context(), s, store.Take, []store.Op{op}) == nil
		})
	}
	single, both := drive(t, s, 8, a), drive(t, s, 8, b, beside)
	for i := range 6 {
		single.answers(100)
		both.answers(100)
		c.Move(slot, c.Masters[i%3])
	}
	single.answers(100)
	single.end()
	both.end()
	for op, d := range map[*store.Op]*traffic{&a: single, &b: both, &beside: both} {
		got, want := used(t, s, *op), d.admitted.Load()
		if d.outages.Load() == 0 && got != want || got < want {
			t.Errorf("%s: got %d used, want the %d admitted; %d outages", op.Space.Name(), got, want, d.outages.Load())
		}
	}
	t.Logf("%d and %d admitted, %d and %d outages", single.admitted.Load(), both.admitted.Load(),
		single.outages.Load(), both.outages.Load())
}

// The position in a list of keys is one of the process that gave it: another one has its keys in another order.
func TestExportAcrossARestart(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
	calls := make([]store.Call, 3000)
	for i := range calls {
		calls[i] = store.Call{Verb: store.Take, Ops: []store.Op{hourly(1000, "rule", fmt.Sprint(i))}}
	}
	if err := s.Do(t.Context(), calls); err != nil {
		t.Fatal(err)
	}
	op := &calls[0].Ops[0]
	ignore := func([]byte, window.State, window.Instant) {}
	next, err := s.Keys(t.Context(), op, nil, ignore)
	if err != nil || next == nil {
		t.Fatalf("got %q, %v, want a position", next, err)
	}
	if _, err := s.Keys(t.Context(), op, next, ignore); err != nil {
		t.Fatal(err)
	}
	n.Restart()
	var out *store.OutageError
	redistest.Eventually(t, "the server answers", func() bool {
		_, err = s.Keys(t.Context(), op, next, ignore)
		return !errors.As(err, &out)
	})
	if !errors.Is(err, store.ErrMoved) {
		t.Errorf("got error %v, want %v", err, store.ErrMoved)
	}
}
