package measure

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"
)

// Load has the numbers of callers that wait for each answer.
type Load struct {
	PerSecond, Calls float64
	P99              float64 // in nanoseconds
	Admitted         float64 // share of the calls
}

// Callers runs n callers of allow for the time d, each with its own keys.
func Callers(allow func(string) bool, keys Keys, n int, d time.Duration) Load {
	var (
		mu       sync.Mutex
		all      = NewHistogram()
		admitted int
		callers  sync.WaitGroup
	)
	start := time.Now()
	for caller := range n {
		callers.Go(func() {
			times, yes, last := NewHistogram(), 0, time.Now()
			for i := caller * keys.Len() / n; last.Sub(start) < d; i++ {
				if allow(keys.At(uint32(i % keys.Len()))) {
					yes++
				}
				now := time.Now()
				_ = times.RecordValue(int64(now.Sub(last))) // no call takes an hour
				last = now
			}
			mu.Lock()
			defer mu.Unlock()
			all.Merge(times)
			admitted += yes
		})
	}
	callers.Wait()
	calls := float64(all.TotalCount())
	return Load{PerSecond: calls / time.Since(start).Seconds(), Calls: calls, P99: Share(all, 0.99), Admitted: float64(admitted) / calls}
}

// Open calls allow at a fixed rate, one call each interval, and returns how long after its turn each call ended. A
// call that is late, because the program was stopped or the call before took long, counts with its delay, because
// real callers do not wait for each other either.
func Open(allow func(string) bool, keys Keys, draw Draw, interval, d time.Duration) *hdrhistogram.Histogram {
	h, start := NewHistogram(), time.Now()
	turn := start
	for i := 0; turn.Sub(start) < d; i++ {
		for time.Now().Before(turn) {
		}
		allow(keys.At(draw[i&(len(draw)-1)]))
		_ = h.RecordValue(int64(time.Since(turn))) // no call takes an hour
		turn = turn.Add(interval)
	}
	return h
}

// Begin begins calls at a fixed rate, regardless of earlier calls, for the time d. After all calls have ended it returns
// how long after its turn each of them ended.
func Begin(rate int, d time.Duration, call func(i int)) *hdrhistogram.Histogram {
	var mu sync.Mutex
	var calls sync.WaitGroup
	all, start := NewHistogram(), time.Now()
	for i := 0; ; i++ {
		turn := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
		if turn.Sub(start) >= d {
			break
		}
		for wait := time.Until(turn); wait > 0; wait = time.Until(turn) {
			// More precise than time.Sleep, which rounds up to a millisecond.
			pause := unix.NsecToTimeval(int64(wait))
			_, _ = unix.Select(0, nil, nil, nil, &pause) // a signal may end it early
		}
		calls.Go(func() {
			call(i)
			took := time.Since(turn)
			mu.Lock()
			_ = all.RecordValue(int64(took)) // no call takes an hour
			mu.Unlock()
		})
	}
	calls.Wait()
	return all
}

// Process is a running program that accepts connections.
type Process struct {
	Addrs [3]string     // the free addresses among its arguments, host:port
	Ready time.Duration // from its start to the first connection
	cmd   *exec.Cmd
	dir   string
}

// Start runs a program in a separate folder and waits until it accepts connections at the first address.
// arguments gets three free addresses and returns the program's arguments.
func Start(path string, env []string, arguments func(a, b, c string) []string) *Process {
	var p Process
	var open [len(p.Addrs)]net.Listener // until all are found, so that they differ
	for i := range open {
		open[i] = Must(net.Listen("tcp", "127.0.0.1:0"))
		p.Addrs[i] = open[i].Addr().String()
	}
	for _, l := range open {
		Check(l.Close())
	}
	p.dir = Must(os.MkdirTemp("", "bench-peers-*"))
	p.cmd = exec.Command(path, arguments(p.Addrs[0], p.Addrs[1], p.Addrs[2])...)
	p.cmd.Dir, p.cmd.Env = p.dir, append(os.Environ(), env...)
	start := time.Now()
	Check(p.cmd.Start())
	p.Await(p.Addrs[0])
	p.Ready = time.Since(start)
	return &p
}

// Await waits until the process accepts connections at addr, and stops the process if it does not.
func (p *Process) Await(addr string) {
	for range 20_000 {
		if conn, err := net.Dial("tcp", addr); err == nil {
			Check(conn.Close())
			return
		}
		time.Sleep(time.Millisecond / 2)
	}
	p.Stop()
	panic(failure{fmt.Errorf("%s does not answer on %s", p.cmd.Path, addr)})
}

// PID returns the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal. Stop still has to be called.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Stop ends the process.
func (p *Process) Stop() {
	_ = p.cmd.Process.Kill() // it may have ended already
	_ = p.cmd.Wait()         // always an error, because it was killed
	_ = os.RemoveAll(p.dir)  // the system cleans its folder for temporary files
}

// Redis is a Redis server without persistence, on a free port of this machine.
type Redis struct {
	*Process
	Addr   string
	client *redis.Client
}

// redisServer is the program; WEIR_REDIS_SERVER names another one.
var redisServer = cmp.Or(os.Getenv("WEIR_REDIS_SERVER"), "redis-server")

// RedisVersion returns the version that the program prints.
func RedisVersion() string {
	out, _ := exec.Command(redisServer, "--version").Output() // "Redis server v=7.0.15 sha=..."
	_, rest, _ := strings.Cut(string(out), "v=")
	return strings.Fields(rest + " unknown")[0]
}

// StartRedis starts a server, or a cluster of one node.
func StartRedis(cluster bool) *Redis {
	p := Start(redisServer, nil, func(a, b, _ string) []string {
		port := func(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }
		args := []string{"--port", port(a), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"}
		if cluster {
			args = append(args, "--cluster-enabled", "yes", "--cluster-port", port(b))
		}
		return args
	})
	s := &Redis{p, p.Addrs[0], redis.NewClient(&redis.Options{Addr: p.Addrs[0]})}
	if cluster {
		ctx := context.Background()
		Check(s.client.ClusterAddSlotsRange(ctx, 0, 16383).Err())
		for !strings.Contains(Must(s.client.ClusterInfo(ctx).Result()), "cluster_state:ok") {
			time.Sleep(50 * time.Millisecond)
		}
	}
	return s
}

// Stop ends the server.
func (s *Redis) Stop() {
	_ = s.client.Close() // nothing is lost
	s.Process.Stop()
}

// Flush empties the server.
func (s *Redis) Flush() { Check(s.client.FlushAll(context.Background()).Err()) }

// Apart pins the server to the first core, and this process to the others, until the returned function is called. The
// system may otherwise run both on one core, because each wakes the other.
func (s *Redis) Apart() (together func()) {
	last := runtime.NumCPU() - 1
	pin := func(pid int, cores string) { // all threads; new ones follow those that make them
		Check(exec.Command("taskset", "-a", "-p", "-c", cores, strconv.Itoa(pid)).Run())
	}
	pin(s.PID(), "0")
	pin(os.Getpid(), fmt.Sprint(min(1, last), "-", last))
	return func() {
		pin(s.PID(), fmt.Sprint("0-", last))
		pin(os.Getpid(), fmt.Sprint("0-", last))
	}
}

// CPU returns the CPU seconds that the threads of a process have used. It is NaN if the system does
// not provide it, as on all systems but Linux.
func CPU(pid int) float64 {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)) // the pattern is right
	if len(threads) == 0 {
		return None()
	}
	sum := 0.0
	for _, t := range threads {
		text, _ := os.ReadFile(t) // a thread that has ended meanwhile is left out
		ran, _, _ := strings.Cut(string(text), " ")
		n, _ := strconv.ParseFloat(ran, 64)
		sum += n / 1e9
	}
	return sum
}

// Resident returns the resident memory of a process, and its maximum, in bytes. Both are NaN if the system does not
// provide them.
func Resident(pid int) (now, most float64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	field := func(name string) float64 {
		_, rest, _ := strings.Cut(string(text), name)
		var kilobytes float64
		if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
			return None()
		}
		return kilobytes * 1024
	}
	return field("VmRSS:"), field("VmHWM:")
}

//go:embed wrk.lua
var wrkLua []byte

// Wrk measures calls over HTTP by wrk, with n connections for the time d, which is at least a second. request
// names one of the requests in wrk.lua.
func Wrk(addr, request string, n int, d time.Duration) (l Load) {
	dir := Must(os.MkdirTemp("", "bench-peers-*"))
	defer func() { _ = os.RemoveAll(dir) }() // the system cleans its folder for temporary files
	script, seconds := filepath.Join(dir, "wrk.lua"), max(1, int(d.Round(time.Second).Seconds()))
	Check(os.WriteFile(script, wrkLua, 0o600))
	out, err := exec.Command("wrk", "-t1", fmt.Sprint("-c", n), fmt.Sprintf("-d%ds", seconds), "-s", script, "http://"+addr, request).CombinedOutput()
	var micros, failed float64
	_, err2 := fmt.Sscan(string(out[strings.LastIndexByte(strings.TrimSpace(string(out)), '\n')+1:]), &l.Calls, &micros, &l.P99, &failed)
	if err := errors.Join(err, err2); err != nil || failed > 0 {
		Check(fmt.Errorf("wrk: %v failed calls, error %w: %s", failed, err, out))
	}
	l.PerSecond, l.P99 = l.Calls/micros*1e6, l.P99*1e3
	return l
}
