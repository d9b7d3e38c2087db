package pgtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Bouncer runs pgbouncer before the server, in transaction mode with a few connections, and returns its address. Settings are
// lines of its configuration. Without the program the test skips, as without PostgreSQL.
func (n *Node) Bouncer(settings ...string) (addr string) {
	n.t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		path = "/usr/sbin/pgbouncer" // not in everyone's PATH
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("WEIR_REQUIRE_PROGRAMS") == "1" {
			n.t.Fatal("install pgbouncer")
		}
		n.t.Skip("install pgbouncer to run this test")
	}
	dir := filepath.Join(n.dir, "bouncer")
	file := filepath.Join(dir, "pgbouncer.ini")
	port := freePort(n.t)
	lines := append([]string{
		"[databases]", fmt.Sprintf("postgres = host=127.0.0.1 port=%d user=%s", n.port, User),
		"[pgbouncer]", "listen_addr = 127.0.0.1", fmt.Sprint("listen_port = ", port), "unix_socket_dir =",
		"auth_type = any", "pool_mode = transaction", "default_pool_size = 3",
	}, settings...)
	if err := os.Mkdir(dir, 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		n.t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(path, file)
	cmd.SysProcAttr = attributes()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()
	})
	addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	Eventually(n.t, "pgbouncer answers", func() bool {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	return addr
}
