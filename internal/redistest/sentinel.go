package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// MasterName is the name of the primary with the Sentinels of [Sentinel].
const MasterName = "weir"

// Guarded is a primary with a replica and three Sentinels, two of which have to
// agree on a failover. They count a primary as dead after 500 ms.
type Guarded struct {
	Primary, Replica *Node // as started; a failover changes their roles
	Sentinels        []*Node
}

// Sentinel starts a [Guarded] primary and waits until all processes have found each
// other.
func Sentinel(t testing.TB, args ...string) *Guarded {
	t.Helper()
	g := &Guarded{Primary: Server(t, args...)}
	g.Replica = g.Primary.Replica(args...)
	for range 3 {
		g.Sentinels = append(g.Sentinels, startSentinel(t, g.Primary))
	}
	for _, s := range g.Sentinels {
		Eventually(t, s.Addr()+" knows the others", func() bool {
			reply, err := s.Do("SENTINEL", "MASTER", MasterName)
			list, _ := reply.([]any)
			return err == nil && pair(list, "num-slaves") == "1" && pair(list, "num-other-sentinels") == "2"
		})
	}
	return g
}

func startSentinel(t testing.TB, primary *Node) *Node {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sentinel.conf") // Sentinels write into theirs
	conf := fmt.Sprintf("sentinel monitor %[1]s 127.0.0.1 %[2]d 2\n"+
		"sentinel down-after-milliseconds %[1]s 500\nsentinel failover-timeout %[1]s 3000\n", MasterName, primary.port)
	if primary.password != "" {
		conf += fmt.Sprintf("sentinel auth-pass %s %s\n", MasterName, primary.password)
	}
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	n := newNode(t, []string{file, "--sentinel"})
	n.start()
	return n
}

// Addrs returns the addresses of the Sentinels, separated by commas.
func (g *Guarded) Addrs() string { return addrs(g.Sentinels) }

// Master returns the address of the primary that the Sentinels name now.
func (g *Guarded) Master() string {
	for _, s := range g.Sentinels {
		reply, err := s.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName)
		if list, _ := reply.([]any); err == nil && len(list) == 2 {
			return fmt.Sprintf("%v:%v", list[0], list[1])
		}
	}
	return ""
}

// pair returns the value after name in a flat list of names and values.
func pair(list []any, name string) string {
	for i := 0; i+1 < len(list); i += 2 {
		if list[i] == name {
			return fmt.Sprint(list[i+1])
		}
	}
	return ""
}

func addrs(nodes []*Node) string {
	list := make([]string, len(nodes))
	for i, n := range nodes {
		list[i] = "127.0.0.1:" + strconv.Itoa(n.port)
	}
	return strings.Join(list, ",")
}
