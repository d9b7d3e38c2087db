package measure

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Server is a Redis server without persistence, on a free port of this machine.
type Server struct {
	Addr string
	cmd  *exec.Cmd
	dir  string
}

// StartRedis starts a server. It fails if the program is missing or does not
// start. WEIR_REDIS_SERVER names another program than redis-server.
func StartRedis() (*Server, error) { return startRedis() }

// StartCluster starts a cluster of one node, as StartRedis does a server.
func StartCluster() (*Server, error) {
	_, bus, err := freePort()
	if err != nil {
		return nil, err
	}
	s, err := startRedis("--cluster-enabled", "yes", "--cluster-port", bus)
	if err != nil {
		return nil, err
	}
	if _, err := s.ask("CLUSTER ADDSLOTSRANGE 0 16383"); err != nil {
		s.Stop()
		return nil, err
	}
	for range 100 {
		if info, err := s.ask("CLUSTER INFO"); err == nil && strings.Contains(info, "cluster_state:ok") {
			return s, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.Stop()
	return nil, errors.New("the cluster does not serve its slots")
}

func startRedis(args ...string) (*Server, error) {
	name := os.Getenv("WEIR_REDIS_SERVER")
	if name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, err
	}
	addr, port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bench-peers-*")
	if err != nil {
		return nil, err
	}
	args = append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir}, args...)
	cmd := exec.Command(path, args...)
	s := &Server{Addr: addr, cmd: cmd, dir: dir}
	if err := cmd.Start(); err != nil {
		_ = os.RemoveAll(dir) // the first error is more useful
		return nil, err
	}
	for range 100 {
		if _, err = s.ask("PING"); err == nil {
			return s, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.Stop()
	return nil, fmt.Errorf("%s does not answer: %w", path, err)
}

func freePort() (addr, port string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	defer l.Close()
	addr = l.Addr().String()
	_, port, err = net.SplitHostPort(addr)
	return addr, port, err
}

// PID returns the number of the server's process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Stop ends the server.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill() // it may have ended already
	_ = s.cmd.Wait()         // always an error, because it was killed
	_ = os.RemoveAll(s.dir)  // the system cleans its folder for temporary files
}

// Kill ends the server's process. Stop still has to be called.
func (s *Server) Kill() error { return s.cmd.Process.Kill() }

// Flush empties the server.
func (s *Server) Flush() error {
	_, err := s.ask("FLUSHALL")
	return err
}

// Version returns the version that the server reports.
func (s *Server) Version() string {
	info, err := s.ask("INFO server")
	if err != nil {
		return "unknown"
	}
	_, rest, _ := strings.Cut(info, "redis_version:")
	version, _, _ := strings.Cut(rest, "\r\n")
	return version
}

// ask sends a command and returns the first kilobytes of the answer.
func (s *Server) ask(command string) (string, error) {
	var d net.Dialer
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := d.DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		return "", err
	}
	r := bufio.NewReaderSize(conn, 8192)
	if _, err := r.Peek(1); err != nil {
		return "", err
	}
	answer, _ := r.Peek(r.Buffered())
	return string(answer), nil
}

// Load has the numbers of callers that wait for each answer.
type Load struct {
	PerSecond float64
	P99       time.Duration
	Admitted  float64 // share of the calls
	Calls     float64
}

// Callers runs n callers of allow for the time d, each with its own keys.
func Callers(allow func(string) bool, keys Keys, n int, d time.Duration) Load {
	var (
		mu       sync.Mutex
		all      Histogram
		admitted int
		callers  sync.WaitGroup
	)
	start := time.Now()
	for caller := range n {
		callers.Go(func() {
			var times Histogram
			yes := 0
			last := time.Now()
			for i := caller * keys.Len() / n; last.Sub(start) < d; i++ {
				if allow(keys.At(uint32(i % keys.Len()))) {
					yes++
				}
				now := time.Now()
				times.Add(now.Sub(last))
				last = now
			}
			mu.Lock()
			defer mu.Unlock()
			all.Merge(&times)
			admitted += yes
		})
	}
	callers.Wait()
	took := time.Since(start)
	return Load{
		PerSecond: float64(all.Len()) / took.Seconds(),
		P99:       all.At(0.99),
		Admitted:  float64(admitted) / float64(all.Len()),
		Calls:     float64(all.Len()),
	}
}
