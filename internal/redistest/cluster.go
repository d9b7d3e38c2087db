package redistest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Slots is the number of slots of a cluster.
const Slots = 16384

// Nodes is a cluster. If a node is dead it continues to serve the slots of the others. With replicas
// it considers a node dead after a second, so that failovers are quick. Without replicas it takes
// ten seconds, because on a busy machine a node may not run for a second.
type Nodes struct {
	Masters  []*Node // as started; a failover changes roles
	Replicas []*Node // Replicas[i] copies Masters[i%len(Masters)]
	t        testing.TB
}

// Cluster starts a cluster with the slots shared evenly among its masters, and
// waits until every node has the whole picture.
func Cluster(t testing.TB, masters, replicas int, args ...string) *Nodes {
	t.Helper()
	c := &Nodes{t: t}
	dead := "10000"
	if replicas > 0 {
		dead = "1000"
	}
	for i := range masters + replicas {
		n := newNode(t, append([]string{
			"--save", "", "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
			"--cluster-node-timeout", dead, "--cluster-require-full-coverage", "no",
			"--cluster-port", strconv.Itoa(FreePort(t)), "--cluster-replica-validity-factor", "0",
		}, args...))
		n.start()
		n.Must("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		if i < masters {
			c.Masters = append(c.Masters, n)
		} else {
			c.Replicas = append(c.Replicas, n)
		}
	}
	c.meet()
	for i, n := range c.Masters {
		command := []string{"CLUSTER", "ADDSLOTS"}
		for slot := i * Slots / masters; slot < (i+1)*Slots/masters; slot++ {
			command = append(command, strconv.Itoa(slot))
		}
		n.Must(command...)
	}
	for i, n := range c.Replicas {
		n.Must("CLUSTER", "REPLICATE", c.Masters[i%masters].ID())
	}
	for _, n := range c.Replicas {
		n.waitSynced()
	}
	c.WaitAgreed()
	return c
}

func (c *Nodes) meet() {
	c.t.Helper()
	first := c.Masters[0]
	for _, n := range c.All()[1:] {
		first.Must("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(n.port), n.busPort())
	}
	for _, n := range c.All() {
		Eventually(c.t, n.Addr()+" knows the cluster", func() bool {
			return n.field("cluster_known_nodes", "CLUSTER", "INFO") == strconv.Itoa(len(c.All()))
		})
	}
}

func (n *Node) busPort() string {
	for i, a := range n.args {
		if a == "--cluster-port" {
			return n.args[i+1]
		}
	}
	return ""
}

// WaitAgreed waits until all nodes that run agree that all slots are served, and by
// which nodes.
func (c *Nodes) WaitAgreed() {
	c.t.Helper()
	Eventually(c.t, "the cluster agrees", func() bool {
		views := map[string]bool{}
		for _, n := range c.All() {
			if !n.Running() {
				continue
			}
			if n.field("cluster_state", "CLUSTER", "INFO") != "ok" ||
				n.field("cluster_slots_ok", "CLUSTER", "INFO") != strconv.Itoa(Slots) {
				return false
			}
			view, err := n.Do("CLUSTER", "SLOTS")
			if err != nil {
				return false
			}
			views[fmt.Sprint(ranges(view))] = true
		}
		return len(views) == 1
	})
}

// ranges returns the slots in a reply of CLUSTER SLOTS, each with the port of its
// master.
func ranges(view any) map[string]any {
	all := map[string]any{}
	list, _ := view.([]any)
	for _, r := range list {
		if r, _ := r.([]any); len(r) > 2 {
			if master, _ := r[2].([]any); len(master) > 1 {
				all[fmt.Sprint(r[0], "-", r[1])] = master[1]
			}
		}
	}
	return all
}

// ID returns the node's name within the cluster.
func (n *Node) ID() string {
	n.t.Helper()
	return fmt.Sprint(n.Must("CLUSTER", "MYID"))
}

// All returns the masters and the replicas.
func (c *Nodes) All() []*Node {
	return append(c.Masters[:len(c.Masters):len(c.Masters)], c.Replicas...)
}

// Addrs returns the addresses of all nodes, separated by commas.
func (c *Nodes) Addrs() string { return addrs(c.All()) }

// Owner returns the node that serves slot now, in the view of the first node that
// runs.
func (c *Nodes) Owner(slot int) *Node {
	c.t.Helper()
	for _, n := range c.All() {
		if !n.Running() {
			continue
		}
		port := n.owner(slot)
		for _, owner := range c.All() {
			if owner.port == port {
				return owner
			}
		}
		break
	}
	c.t.Fatalf("slot %d has no owner", slot)
	return nil
}

// owner returns the port of the node that serves slot in the view of n, or 0.
func (n *Node) owner(slot int) int {
	n.t.Helper()
	list, _ := n.Must("CLUSTER", "SLOTS").([]any)
	for _, r := range list {
		r, _ := r.([]any)
		if int(r[0].(int64)) <= slot && slot <= int(r[1].(int64)) {
			return int(r[2].([]any)[1].(int64))
		}
	}
	return 0
}

// Move migrates slot with its keys to another master, key by key while the
// cluster serves it, as resharding tools do.
func (c *Nodes) Move(slot int, to *Node) {
	c.t.Helper()
	from, number := c.Owner(slot), strconv.Itoa(slot)
	if from == to {
		return
	}
	to.Must("CLUSTER", "SETSLOT", number, "IMPORTING", from.ID())
	from.Must("CLUSTER", "SETSLOT", number, "MIGRATING", to.ID())
	for {
		keys, _ := from.Must("CLUSTER", "GETKEYSINSLOT", number, "10").([]any)
		if len(keys) == 0 {
			break
		}
		for _, key := range keys {
			reply := from.Must("MIGRATE", "127.0.0.1", strconv.Itoa(to.port), key.(string), "0", "5000")
			if s, _ := reply.(string); !strings.HasPrefix(s, "OK") && s != "NOKEY" {
				c.t.Fatalf("migrate %q: got %v", key, reply)
			}
		}
	}
	for _, n := range []*Node{to, from} {
		n.Must("CLUSTER", "SETSLOT", number, "NODE", to.ID())
	}
	// A replica that did not know could never take the place of a master that is killed then: the others would refuse its epoch.
	Eventually(c.t, "all nodes know that the slot has moved", func() bool {
		for _, n := range slices.Concat(c.Masters, c.Replicas) {
			if n.Running() && n.owner(slot) != to.port {
				return false
			}
		}
		return true
	})
}
