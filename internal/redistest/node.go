package redistest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Node is one Redis process. Its methods are safe for concurrent use.
type Node struct {
	t        testing.TB
	program  string
	dir      string
	port     int
	args     []string
	password string

	mu      sync.Mutex
	cmd     *exec.Cmd     // guarded by mu; nil while not running
	ended   chan struct{} // guarded by mu; closed when cmd has ended
	control *conn         // guarded by mu; nil when not connected
}

// Server starts a server without persistence. Args are further settings as the
// command line has them: "--maxmemory", "2mb".
func Server(t testing.TB, args ...string) *Node {
	t.Helper()
	n := newNode(t, append([]string{"--save", "", "--appendonly", "no"}, args...))
	n.start()
	return n
}

// Replica starts a server that copies n, and waits until it has all data.
func (n *Node) Replica(args ...string) *Node {
	n.t.Helper()
	own := []string{"--replicaof", "127.0.0.1 " + strconv.Itoa(n.port)}
	if n.password != "" {
		own = append(own, "--requirepass", n.password, "--masterauth", n.password)
	}
	r := Server(n.t, append(own, args...)...)
	r.waitSynced()
	// A primary replicates nothing until its replica has confirmed something.
	n.Must("SET", "probe", "")
	Eventually(n.t, r.Addr()+" confirms", func() bool {
		confirmed, err := n.Do("WAIT", "1", "100")
		return err == nil && confirmed == int64(1)
	})
	n.Must("DEL", "probe")
	return r
}

func newNode(t testing.TB, args []string) *Node {
	t.Helper()
	n := &Node{t: t, program: program(t), dir: t.TempDir(), port: FreePort(t), args: args}
	if at := slices.Index(args, "--requirepass"); at >= 0 {
		n.password = args[at+1]
	}
	t.Cleanup(n.Kill)
	return n
}

// start runs the process and waits until it answers. If another process has taken
// the port meanwhile, it gets another one.
func (n *Node) start() {
	n.t.Helper()
	for range 5 {
		if n.tryStart() {
			return
		}
		n.port = FreePort(n.t)
	}
	n.t.Fatalf("%s %q did not start:\n%s", n.program, n.args, n.Log())
}

// tryStart returns false when the process ended before it answered.
func (n *Node) tryStart() bool {
	n.t.Helper()
	n.run()
	ended := n.end()
	answered := false
	Eventually(n.t, n.Addr()+" answers", func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		_, err := n.Do("PING")
		answered = err == nil
		return answered
	})
	return answered
}

func (n *Node) run() {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	args := slices.Concat(n.args, []string{
		"--port", strconv.Itoa(n.port), "--bind", "127.0.0.1", "--dir", n.dir,
		"--logfile", filepath.Join(n.dir, "log"), "--daemonize", "no", "--repl-diskless-sync-delay", "0",
	})
	cmd := exec.Command(n.program, args...)
	cmd.Dir = n.dir
	// If the test process dies without cleaning up, this process dies, too.
	cmd.SysProcAttr = diesWithParent()
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its log has the reason
		close(ended)
	}()
	n.cmd, n.ended = cmd, ended
}

func (n *Node) end() chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ended
}

// Addr returns the node's address, host:port.
func (n *Node) Addr() string { return loopback(n.port) }

// Log returns what the process has logged so far.
func (n *Node) Log() string {
	b, err := os.ReadFile(filepath.Join(n.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Kill ends the process at once, as kill -9 does, and waits for its end.
func (n *Node) Kill() {
	n.mu.Lock()
	cmd, ended := n.cmd, n.ended
	n.cmd = nil
	n.disconnect()
	n.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Kill() // it may have ended by itself
	<-ended
}

// Restart starts the process again on the same port with the same files, after
// killing it if it runs, and waits until it answers.
func (n *Node) Restart() {
	n.t.Helper()
	n.Kill()
	if !n.tryStart() {
		n.t.Fatalf("%s %q did not start again:\n%s", n.program, n.args, n.Log())
	}
}

// Stop suspends the process with all its connections open, like a machine that hangs. If the system
// does not support that, Stop skips the test.
func (n *Node) Stop() {
	if stopSignal == nil {
		n.t.Skip("only Unix can stop a process and continue it")
	}
	n.signal(stopSignal)
}

// Continue ends a Stop.
func (n *Node) Continue() { n.signal(continueSignal) }

// Pause suspends the process for d, like Stop. It returns at once.
func (n *Node) Pause(d time.Duration) {
	n.Stop()
	timer := time.AfterFunc(d, n.Continue)
	n.t.Cleanup(func() { timer.Stop() })
}

func (n *Node) signal(s os.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return
	}
	if err := n.cmd.Process.Signal(s); err != nil {
		n.t.Errorf("%s: signal %v: %v", loopback(n.port), s, err)
	}
}

// Do sends a command and returns its reply: a string, an int64, nil, an error,
// or an []any of these.
func (n *Node) Do(args ...string) (any, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return nil, fmt.Errorf("redistest: %s is not running", loopback(n.port))
	}
	if n.control == nil {
		c, err := dial(loopback(n.port), n.password)
		if err != nil {
			return nil, err
		}
		n.control = c
	}
	reply, err := n.control.do(args...)
	if err != nil {
		n.disconnect()
		return nil, err
	}
	if e, ok := reply.(error); ok {
		return nil, e
	}
	return reply, nil
}

// Must calls Do, and ends the test if the command fails.
func (n *Node) Must(args ...string) any {
	n.t.Helper()
	reply, err := n.Do(args...)
	if err != nil {
		n.t.Fatalf("%s: %q: %v", n.Addr(), args, err)
	}
	return reply
}

// disconnect closes the connection. It needs mu.
func (n *Node) disconnect() {
	if n.control != nil {
		n.control.close()
		n.control = nil
	}
}

// Running reports whether the process has been started and not killed.
func (n *Node) Running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cmd != nil
}

// Info returns one value of INFO: Info("used_cpu_user"). It is empty when there is
// no such field or no answer.
func (n *Node) Info(field string) string { return n.field(field, "INFO", "everything") }

// field returns the value of a field in a reply of "field:value" lines.
func (n *Node) field(name string, command ...string) string {
	reply, err := n.Do(command...)
	if err != nil {
		return ""
	}
	text, _ := reply.(string)
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (n *Node) waitSynced() {
	n.t.Helper()
	Eventually(n.t, n.Addr()+" is a replica in step", func() bool {
		return n.Info("role") == "slave" && n.Info("master_link_status") == "up"
	})
}

// A process keeps its port when it is killed and restarted, so ports are below those that systems give
// to outgoing connections.
const lowestPort, highestPort = 15000, 32000

// block is how many ports a process claims at a time, by listening on the first of them until it ends. Otherwise the
// tests of other packages, which run at the same time, could take a port before its server starts, or while it is down.
const block = 50

// given are the ports that this process has handed out.
var given struct {
	sync.Mutex
	next   int            // to be tried next, after a new claim if it is a multiple of block; guarded by Mutex
	claims []net.Listener // kept open; guarded by Mutex
}

// FreePort returns a port of the loopback without a listener.
func FreePort(t testing.TB) int {
	t.Helper()
	given.Lock()
	defer given.Unlock()
	for range 1000 {
		if given.next%block == 0 {
			first := lowestPort + block*rand.IntN((highestPort-lowestPort)/block)
			claim, err := net.Listen("tcp", loopback(first))
			if err != nil {
				continue
			}
			given.next, given.claims = first+1, append(given.claims, claim)
		}
		port := given.next
		given.next++
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		l.Close()
		return port
	}
	t.Fatalf("found no free port between %d and %d", lowestPort, highestPort)
	return 0
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
