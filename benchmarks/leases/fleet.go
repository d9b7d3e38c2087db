package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/benchmarks/internal/measure"
)

// drill is a run of one drill. It is also what packages redistest and pgtest need of a test.
type drill struct {
	testing.TB
	dir   string
	later []func()
	room  int

	limit  int64
	credit int64 // of all nodes
	window time.Duration
	procs  []*process
	start  int64
	ended  int64
}

func (d *drill) Helper()                   {}
func (d *drill) Name() string              { return "drill" }
func (d *drill) Cleanup(f func())          { d.later = append(d.later, f) }
func (d *drill) Log(args ...any)           { fmt.Fprintln(os.Stderr, args...) }
func (d *drill) Logf(f string, a ...any)   { fmt.Fprintf(os.Stderr, f+"\n", a...) }
func (d *drill) Fatal(args ...any)         { panic(fmt.Sprint(args...)) }
func (d *drill) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (d *drill) Error(args ...any)         { panic(fmt.Sprint(args...)) }
func (d *drill) Errorf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (d *drill) Skip(args ...any)          { panic(fmt.Sprint(args...)) }
func (d *drill) Skipf(f string, a ...any)  { panic(fmt.Sprintf(f, a...)) }
func (d *drill) TempDir() string {
	dir, err := os.MkdirTemp(d.dir, "")
	measure.Check(err)
	return dir
}

func (d *drill) end() {
	for i := len(d.later) - 1; i >= 0; i-- {
		d.later[i]()
	}
	d.later = nil
}

// process is a node process.
type process struct {
	*exec.Cmd
	*journal
	denials *journal
	start   func(int64)
}

// spawn starts a node. It is ready when it returns.
func (d *drill) spawn(n node) *process {
	n.Room = d.room
	n.Journal = filepath.Join(d.dir, fmt.Sprintf("journal%d", len(d.procs)))
	if n.Denials != "" {
		n.Denials = n.Journal + "denials"
	}
	text, err := json.Marshal(n)
	measure.Check(err)
	self, err := os.Executable()
	measure.Check(err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), nodeVar+"="+string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	measure.Check(err)
	out, err := cmd.StdoutPipe()
	measure.Check(err)
	measure.Check(cmd.Start())
	if !bufio.NewScanner(out).Scan() {
		panic("a node did not start")
	}
	p := &process{Cmd: cmd, start: func(at int64) { fmt.Fprintln(in, at) }}
	p.journal, err = openJournal(n.Journal, n.Room)
	measure.Check(err)
	if n.Denials != "" {
		p.denials, err = openJournal(n.Denials, n.Room)
		measure.Check(err)
	}
	d.procs = append(d.procs, p)
	d.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = p.journal.close()
		if p.denials != nil {
			_ = p.denials.close()
		}
	})
	return p
}

// run starts the nodes, then their loads at one instant, and returns when they have ended. during runs
// meanwhile, with the processes of the nodes.
func (d *drill) run(nodes []node, during func(start int64, procs []*process)) {
	var procs []*process
	for _, n := range nodes {
		procs = append(procs, d.spawn(n))
	}
	d.start = mono() + int64(200*time.Millisecond)
	for _, p := range procs {
		p.start(d.start)
	}
	if during != nil {
		during(d.start, procs)
	}
	for _, p := range d.procs {
		_ = p.Wait()
	}
	d.ended = mono()
}

// until waits for an instant after the start.
func (d *drill) until(t time.Duration) {
	if left := d.start + int64(t) - mono(); left > 0 {
		<-time.After(time.Duration(left))
	}
}

// hits returns all hits on a key.
func (d *drill) hits() (all []admission) {
	for _, p := range d.procs {
		all = append(all, p.read()...)
	}
	return all
}

// sum adds up a count of all nodes.
func (d *drill) sum(of func(*journal) int64) (n int64) {
	for _, p := range d.procs {
		n += of(p.journal)
	}
	return n
}

func offered(j *journal) int64  { return j.offered.Load() }
func admitted(j *journal) int64 { return j.counts.admitted.Load() }
func calls(j *journal) int64    { return j.counts.calls.Load() }
func failed(j *journal) int64   { return j.failed.Load() }
