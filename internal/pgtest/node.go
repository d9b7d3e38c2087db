package pgtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// User is the superuser of the servers. Connections over the loopback need no password.
const User = "weir"

// Node is one server. Its methods are safe for concurrent use.
type Node struct {
	t    testing.TB
	bin  string
	dir  string
	port int
	args []string

	mu    sync.Mutex
	cmd   *exec.Cmd     // guarded by mu; nil while not running
	ended chan struct{} // guarded by mu; closed when cmd has ended
}

// Server starts a server with an empty database. Args are settings, as the command line has them:
// "-c", "max_connections=20". Without others, the server does not wait for its disk.
func Server(t testing.TB, args ...string) *Node {
	t.Helper()
	n := newNode(t, append([]string{"-c", "fsync=off"}, args...))
	if out, err := n.command("initdb", "-D", n.data(), "-U", User, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	n.start()
	return n
}

func newNode(t testing.TB, args []string) *Node {
	t.Helper()
	n := &Node{t: t, bin: programs(t), port: freePort(t), args: args}
	// The directory of t.TempDir is closed to other users.
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		t.Fatal(err)
	}
	n.dir = dir
	t.Cleanup(func() {
		n.Kill()
		_ = os.RemoveAll(dir)
	})
	if err := own(dir); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *Node) data() string { return filepath.Join(n.dir, "data") }

// command returns a program of PostgreSQL, to be run as a user who may.
func (n *Node) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(n.bin, name), args...)
	cmd.Dir = n.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PGCONNECT_TIMEOUT=10")
	cmd.SysProcAttr = attributes()
	return cmd
}

// start runs the server and waits until it answers. If another process has taken the port
// meanwhile, it gets another one.
func (n *Node) start() {
	n.t.Helper()
	for range 5 {
		if n.tryStart() {
			return
		}
		n.port = freePort(n.t)
	}
	n.t.Fatalf("postgres %q did not start:\n%s", n.args, n.Log())
}

// tryStart returns false when the process ended before it answered.
func (n *Node) tryStart() (answered bool) {
	n.t.Helper()
	log, err := os.OpenFile(filepath.Join(n.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close()
	args := append([]string{"-D", n.data(), "-p", strconv.Itoa(n.port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" + n.dir}, n.args...)
	cmd := n.command("postgres", args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its log has the reason
		close(ended)
	}()
	n.mu.Lock()
	n.cmd, n.ended = cmd, ended
	n.mu.Unlock()
	Eventually(n.t, n.Addr()+" answers", func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		_, err := n.Do("SELECT 1")
		answered = err == nil
		return answered
	})
	return answered
}

// Addr returns the server's address, host:port.
func (n *Node) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port)) }

// URL returns the URL of the server's database. Options are parameters, such as "timeout=5s".
func (n *Node) URL(options ...string) string {
	return "postgres://" + User + "@" + n.Addr() + "/postgres?" + strings.Join(append([]string{"sslmode=disable"}, options...), "&")
}

// Log returns what the server has logged so far.
func (n *Node) Log() string {
	b, err := os.ReadFile(filepath.Join(n.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Do runs statements as the superuser, over the server's socket. It returns the rows, one a line with | between
// the columns.
func (n *Node) Do(sql string) (string, error) {
	cmd := n.command("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", n.dir, "-p", strconv.Itoa(n.port), "-U", User, "-d", "postgres", "-c", sql)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("pgtest: %s: %w: %s", sql, err, problem.Bytes())
	}
	return strings.TrimSpace(out.String()), nil
}

// Must is [Node.Do] that fails the test on an error.
func (n *Node) Must(sql string) string {
	n.t.Helper()
	out, err := n.Do(sql)
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}

// Kill ends the server at once, without a checkpoint: it recovers from its log when it is started again.
func (n *Node) Kill() {
	n.mu.Lock()
	cmd, ended := n.cmd, n.ended
	n.cmd = nil
	n.mu.Unlock()
	if cmd == nil {
		return
	}
	for _, signal := range []os.Signal{continueSignal, endSignal} {
		_ = cmd.Process.Signal(signal) // it may have ended by itself
	}
	<-ended
}

// Restart starts the server again on the same port with the same files, after killing it if it
// runs, and waits until it answers.
func (n *Node) Restart() {
	n.t.Helper()
	n.Kill()
	if !n.tryStart() {
		n.t.Fatalf("postgres %q did not start again:\n%s", n.args, n.Log())
	}
}

// Shutdown ends the server in order: it closes its connections and writes everything.
func (n *Node) Shutdown() {
	n.mu.Lock()
	cmd, ended := n.cmd, n.ended
	n.cmd = nil
	n.mu.Unlock()
	if cmd != nil {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended by itself
		<-ended
	}
}

// Write writes a file of the server's data directory. SQL that runs SELECT pg_reload_conf() makes the
// server read it.
func (n *Node) Write(name, text string) {
	n.t.Helper()
	path := filepath.Join(n.data(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
	if err := own(path); err != nil {
		n.t.Fatal(err)
	}
}

// Own gives a directory to the user whom the server runs as.
func (n *Node) Own(dir string) {
	n.t.Helper()
	if err := own(dir); err != nil {
		n.t.Fatal(err)
	}
}

// Standby returns a server that follows n and accepts no writes until it is promoted.
func (n *Node) Standby() *Node {
	n.t.Helper()
	m := newNode(n.t, n.args)
	if out, err := m.command("pg_basebackup", "-h", n.dir, "-p", strconv.Itoa(n.port), "-U", User, "-D", m.data(), "-R", "-c", "fast", "--no-sync").CombinedOutput(); err != nil {
		n.t.Fatalf("pg_basebackup: %v\n%s", err, out)
	}
	m.start()
	return m
}

// Promote makes a standby accept writes, and waits until it does.
func (n *Node) Promote() {
	n.t.Helper()
	n.Must("SELECT pg_promote()")
}

// Stop suspends all processes of the server with its connections open, like a machine that
// hangs. If the system does not support that, Stop skips the test.
func (n *Node) Stop() {
	if stopSignal == nil {
		n.t.Skip("only Linux can stop a server and continue it")
	}
	n.signal(stopSignal)
}

// Continue ends a Stop.
func (n *Node) Continue() { n.signal(continueSignal) }

func (n *Node) signal(s os.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return
	}
	for _, pid := range append(children(n.cmd.Process.Pid), n.cmd.Process.Pid) {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Signal(s) // a child may have ended
		}
	}
}

// freePort returns a port of the loopback without a listener. It is below those that systems give to outgoing
// connections, because a server keeps its port when it is killed and restarted, and below those of package redistest.
func freePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 10000 + rand.IntN(5000)
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("found no free port")
	return 0
}
