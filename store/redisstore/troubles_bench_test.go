package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/window"
)

// trouble is something that happens to servers.
type trouble struct {
	name   string
	loses  bool          // servers lose hits, and may admit as many again
	most   int           // degraded calls, or -1: as many as it takes
	within time.Duration // calls are answered again, after the trouble

	// setup starts servers. It returns their URL, and a function that makes the
	// trouble and returns when it ended, or began if it does not end by itself.
	setup func(b *testing.B) (url string, cause func(*loading) time.Time)
}

// onServer returns the setup of a trouble of one server.
func onServer(cause func(b *testing.B, n *redistest.Node), args ...string) func(*testing.B) (string, func(*loading) time.Time) {
	return func(b *testing.B) (string, func(*loading) time.Time) {
		n := redistest.Server(b, args...)
		return "redis://" + n.Addr(), func(*loading) time.Time { cause(b, n); return time.Time{} }
	}
}

// onNetwork returns the setup of a trouble of the network of a server.
func onNetwork(cause func(p *redistest.Proxy)) func(*testing.B) (string, func(*loading) time.Time) {
	return func(b *testing.B) (string, func(*loading) time.Time) {
		p := redistest.Through(b, redistest.Server(b))
		return "redis://" + p.Addr(), func(*loading) time.Time {
			cause(p)
			time.Sleep(3 * time.Second)
			p.Heal()
			return time.Time{}
		}
	}
}

// every calls f some times, with pauses before.
func every(pause time.Duration, times int, f func()) {
	for range times {
		time.Sleep(pause)
		f()
	}
}

// killClients closes all connections but the test's own.
func killClients(n *redistest.Node) { n.Must("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") }

var troubles = []trouble{
	{name: "none", setup: onServer(func(*testing.B, *redistest.Node) { time.Sleep(3 * time.Second) })},
	{name: "`SIGSTOP` for 2.5 s", most: -1, within: time.Second, setup: onServer(func(_ *testing.B, n *redistest.Node) {
		n.Stop()
		time.Sleep(2500 * time.Millisecond)
		n.Continue()
	})},
	{name: "`DEBUG SLEEP 1`", most: -1, within: time.Second, setup: onServer(func(_ *testing.B, n *redistest.Node) {
		n.Must("DEBUG", "SLEEP", "1")
	}, "--enable-debug-command", "yes")},
	{name: "`CLIENT KILL` × 5", most: 250, within: time.Second, setup: onServer(func(_ *testing.B, n *redistest.Node) {
		every(300*time.Millisecond, 5, func() { killClients(n) })
	})},
	{name: "`SCRIPT FLUSH` × 20", setup: onServer(func(_ *testing.B, n *redistest.Node) {
		every(100*time.Millisecond, 20, func() { n.Must("SCRIPT", "FLUSH") })
	})},
	{name: "`CLIENT PAUSE 1000 ALL`", most: -1, within: time.Second, setup: onServer(func(_ *testing.B, n *redistest.Node) {
		n.Must("CLIENT", "PAUSE", "1000", "ALL")
		time.Sleep(time.Second)
	})},
	{name: "failover by Sentinels", loses: true, most: -1, within: 5 * time.Second, setup: func(b *testing.B) (string, func(*loading) time.Time) {
		g := redistest.Sentinel(b)
		url := fmt.Sprintf("redis+sentinel://%s/%s", g.Addrs(), redistest.MasterName)
		return url, func(*loading) time.Time {
			began := time.Now()
			g.Primary.Kill()
			redistest.Eventually(b, "the replica leads", func() bool { return g.Master() == g.Replica.Addr() })
			return began
		}
	}},
	{name: "failover in a cluster", loses: true, most: -1, within: 5 * time.Second, setup: func(b *testing.B) (string, func(*loading) time.Time) {
		c := redistest.Cluster(b, 3, 3)
		return "redis+cluster://" + c.Addrs(), func(*loading) time.Time {
			began := time.Now()
			c.Masters[0].Kill()
			c.WaitAgreed()
			return began
		}
	}},
	{name: "resharding, 100 slots", setup: func(b *testing.B) (string, func(*loading) time.Time) {
		c := redistest.Cluster(b, 3, 0)
		return "redis+cluster://" + c.Addrs(), func(l *loading) time.Time {
			limit := window.MustCompile(window.Limit{Quota: troubleQuota, Window: window.Sliding(time.Hour)})
			op := store.Op{Space: store.NewSpace("", "hits", "hits", 0), Limit: limit}
			for i := range 100 { // the slot of the key that is in use, from node to node
				op.Key = []byte(troubleUser(l.made() / troubleTakes))
				slot := redisstore.SlotOf([]byte(redisstore.KeyName("weir", &op)))
				at := c.Owner(slot)
				c.Move(slot, c.Masters[i%3])
				if at == c.Masters[i%3] {
					c.Move(slot, c.Masters[(i+1)%3])
				}
			}
			return time.Time{}
		}
	}},
	{name: "+5 ms", within: time.Second, setup: onNetwork(func(p *redistest.Proxy) { p.Delay(5 * time.Millisecond / 2) })},
	{name: "+50 ms", most: -1, within: time.Second, setup: onNetwork(func(p *redistest.Proxy) { p.Delay(50 * time.Millisecond / 2) })},
	{name: "2 % of chunks cut", most: -1, within: time.Second, setup: onNetwork(func(p *redistest.Proxy) { p.Tear(0.02) })},
	{name: "password change", most: -1, within: time.Second, setup: onServer(func(_ *testing.B, n *redistest.Node) {
		n.Must("ACL", "SETUSER", "default", ">other") // this connection stays
		n.Must("ACL", "SETUSER", "default", "resetpass", ">other")
		killClients(n)
		time.Sleep(2 * time.Second)
		n.Must("ACL", "SETUSER", "default", "nopass")
	})},
	{name: "becomes a replica", most: -1, within: time.Second, setup: onServer(func(_ *testing.B, n *redistest.Node) {
		n.Must("REPLICAOF", "127.0.0.1", "1")
		time.Sleep(2 * time.Second)
		n.Must("REPLICAOF", "NO", "ONE")
	})},
	{name: "`maxclients`", most: -1, within: time.Second, setup: onServer(func(_ *testing.B, n *redistest.Node) {
		before, _ := n.Must("CONFIG", "GET", "maxclients").([]any)
		n.Must("CONFIG", "SET", "maxclients", "1")
		killClients(n)
		time.Sleep(2 * time.Second)
		n.Must("CONFIG", "SET", "maxclients", fmt.Sprint(before[1]))
	})},
}
