package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	takeRules = `rules:
  - name: posts
    per: [user]
    limit: 1_000_000_000
    window: {fixed: 24h}
`
	takers    = 16
	takeTurns = 3
)

var addressed = regexp.MustCompile(`http://(127\.0\.0\.1:\d+)`)

// take measures POST /v1/take of the program weir without a directory and with one, in
// turns: keep-alive connections, users drawn from all keys.
func take() error {
	rules := filepath.Join(*dir, "rules.yaml")
	if err := os.WriteFile(rules, []byte(takeRules), 0o600); err != nil {
		return err
	}
	var best [2]float64
	var cost [2]time.Duration
	for turn := range takeTurns {
		for kept := range best {
			args := []string{"serve", "--rules", rules, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
			if kept == 1 {
				args = append(args, "--data", filepath.Join(*dir, "take"+strconv.Itoa(turn)))
			}
			rate, each, err := takeFrom(args)
			if err != nil {
				return err
			}
			if rate > best[kept] {
				best[kept] = rate
			}
			if cost[kept] == 0 || each < cost[kept] {
				cost[kept] = each
			}
		}
	}
	fmt.Printf("take     in memory %.0f a second, %v of processor time each; with a directory %.0f and %v: %.2f times the rate, %.2f times the time (best of %d turns of %v, %d connections, %d users)\n",
		best[0], cost[0], best[1], cost[1], best[1]/best[0], float64(cost[1])/float64(cost[0]), takeTurns, *length/(2*takeTurns), takers, *keys)
	return nil
}

// takeFrom starts a service, and returns its takes a second and its processor time for
// each.
func takeFrom(args []string) (rate float64, each time.Duration, err error) {
	cmd := exec.Command(*program, args...)
	var logs bytes.Buffer
	cmd.Stderr = &logs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	first, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w\n%s", *program, err, logs.String())
	}
	m := addressed.FindStringSubmatch(first)
	if m == nil {
		return 0, 0, fmt.Errorf("%s: got %q, want an address", *program, first)
	}
	for loading := true; loading; {
		resp, err := http.Post("http://"+m[1]+"/v1/take", "application/json", strings.NewReader(`{"attributes": {"user": "first"}}`))
		if err != nil {
			return 0, 0, err
		}
		_ = resp.Body.Close()
		loading = resp.StatusCode == http.StatusServiceUnavailable
	}
	d := *length / (2 * takeTurns)
	if _, err := takesFor(m[1], d/4); err != nil { // warm
		return 0, 0, err
	}
	before := processorOf(cmd.Process.Pid)
	n, err := takesFor(m[1], d)
	if err != nil {
		return 0, 0, err
	}
	return float64(n) / d.Seconds(), (processorOf(cmd.Process.Pid) - before) / time.Duration(n), nil
}

// takesFor takes for d, and returns how often.
func takesFor(addr string, d time.Duration) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var n atomic.Int64
	var group sync.WaitGroup
	errs := make(chan error, takers)
	for g := range uint64(takers) {
		group.Go(func() {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				errs <- err
				return
			}
			defer func() { _ = c.Close() }()
			r, answers := rand.New(rand.NewPCG(g, 1)), bufio.NewReader(c)
			for ctx.Err() == nil {
				body := fmt.Sprintf(`{"attributes":{"user":"user-%d"}}`, r.IntN(*keys))
				if _, err := fmt.Fprintf(c, "POST /v1/take HTTP/1.1\r\nHost: weir\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
					errs <- err
					return
				}
				if err := answer(answers); err != nil {
					errs <- err
					return
				}
				n.Add(1)
			}
		})
	}
	group.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
		return n.Load(), nil
	}
}

// answer reads one answer.
func answer(r *bufio.Reader) error {
	length := 0
	for first := true; ; first = false {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		if first && !strings.HasPrefix(line, "HTTP/1.1 200") {
			return fmt.Errorf("got %q", line)
		}
		if line == "\r\n" {
			break
		}
		if value, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return err
			}
		}
	}
	_, err := io.CopyN(io.Discard, r, int64(length))
	return err
}

// processorOf returns the processor time of another process.
func processorOf(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}
