package redistest_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
)

func TestServerKeepsItsPort(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t, "--requirepass", "secret")
	n.Must("SET", "k", "v")
	addr := n.Addr()
	n.Kill()
	if _, err := n.Do("PING"); err == nil {
		t.Error("ping of a killed server: got no error")
	}
	n.Restart()
	if got := n.Addr(); got != addr {
		t.Errorf("address after a restart: got %s, want %s", got, addr)
	}
	if got := n.Must("GET", "k"); got != nil {
		t.Errorf("key after a restart without files: got %v, want none", got)
	}
}

func TestSentinelFailsOver(t *testing.T) {
	t.Parallel()
	g := redistest.Sentinel(t)
	g.Primary.Kill()
	redistest.Eventually(t, "the replica leads", func() bool { return g.Master() == g.Replica.Addr() })
	redistest.Eventually(t, "it takes writes", func() bool { return g.Replica.Info("role") == "master" })
}

func TestClusterMovesSlotsAndFailsOver(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 3, 3)
	const slot = 12182 // of the key foo
	c.Owner(slot).Must("SET", "foo", "bar")
	to := c.Masters[0]
	c.Move(slot, to)
	if got := to.Must("GET", "foo"); got != "bar" {
		t.Errorf("key in its new place: got %v, want bar", got)
	}
	redistest.Eventually(t, "the replica has the key", func() bool { return c.Replicas[0].Must("DBSIZE") == int64(1) })
	to.Kill()
	redistest.Eventually(t, "the replica has the slot", func() bool {
		reply, _ := c.Replicas[0].Do("GET", "foo")
		return reply == "bar"
	})
}

// line sends a PING through conn and returns what comes back within d.
func line(t *testing.T, addr string, d time.Duration) (string, net.Conn) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprint(c, "PING\r\n")
	return answer(c, d), c
}

func answer(c net.Conn, d time.Duration) string {
	_ = c.SetReadDeadline(time.Now().Add(d))
	s, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(s)
}

func TestProxy(t *testing.T) {
	t.Parallel()
	p := redistest.Through(t, redistest.Server(t))
	if got, _ := line(t, p.Addr(), time.Minute); got != "+PONG" {
		t.Fatalf("through the proxy: got %q, want +PONG", got)
	}

	p.Delay(50 * time.Millisecond)
	began := time.Now()
	if got, _ := line(t, p.Addr(), time.Minute); got != "+PONG" || time.Since(began) < 100*time.Millisecond {
		t.Errorf("delayed by 50 ms each way: got %q after %v", got, time.Since(began))
	}

	p.Heal()
	p.Hold()
	got, c := line(t, p.Addr(), 20*time.Millisecond)
	if !strings.Contains(got, "timeout") {
		t.Errorf("held: got %q, want a timeout", got)
	}
	p.Heal()
	if got := answer(c, time.Minute); got != "+PONG" {
		t.Errorf("after holding: got %q, want +PONG", got)
	}

	p.Reset()
	if got := answer(c, time.Minute); !strings.Contains(got, "reset") && !strings.Contains(got, "EOF") {
		t.Errorf("reset: got %q", got)
	}
	p.Cut()
	if got, _ := line(t, p.Addr(), time.Minute); got == "+PONG" {
		t.Error("cut: got an answer")
	}
	p.Heal()
	if got, _ := line(t, p.Addr(), time.Minute); got != "+PONG" {
		t.Errorf("healed: got %q, want +PONG", got)
	}
}
