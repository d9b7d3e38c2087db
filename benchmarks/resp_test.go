package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

var (
	respLine  = regexp.MustCompile(`Redis protocol: redis://(\S+)`)
	respRules = regexp.MustCompile("(?s)```yaml\n(.*?)```")
)

// respService runs a service for Redis clients with the rules of the manual, and returns
// its address.
func respService(t *testing.T) (address string) {
	t.Helper()
	text, err := os.ReadFile("../docs/reference/resp.md")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, respRules.FindSubmatch(text)[1], 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(weirProgram(), "serve", "--rules", file, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--resp-listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // always an error, because it was killed
	})
	var greeting strings.Builder
	part := make([]byte, 256)
	for respLine.FindStringSubmatch(greeting.String()) == nil {
		n, err := out.Read(part)
		if err != nil {
			t.Fatalf("got greeting %q and %v", greeting.String(), err)
		}
		greeting.Write(part[:n])
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return respLine.FindStringSubmatch(greeting.String())[1]
}

// The Go programs that the manual of the Redis protocol links to print what it says.
func TestRESPPrograms(t *testing.T) {
	t.Parallel()
	address := respService(t)
	for _, name := range []string{"go-redis", "rueidis"} {
		text, err := os.ReadFile("../examples/resp/" + name + ".go")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "localhost:6380", address)), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), "go", "run", file).CombinedOutput()
		if err != nil || string(out) != "1\n0\n" {
			t.Errorf("%s: got %v\n%s\nwant 1 and 0", name, err, out)
		}
	}
}

// go-redis in both versions of the protocol, its pipelines and its pool.
func TestGoRedis(t *testing.T) {
	t.Parallel()
	address := respService(t)
	for _, version := range []int{2, 3} {
		r := goredis.NewClient(&goredis.Options{Addr: address, Protocol: version, MaxRetries: -1})
		t.Cleanup(func() { _ = r.Close() })
		if got, err := r.Ping(t.Context()).Result(); got != "PONG" || err != nil {
			t.Errorf("RESP%d: got %s %v", version, got, err)
		}
		key := "go-redis-" + string(rune('0'+version))
		cmds, err := r.Pipelined(t.Context(), func(p goredis.Pipeliner) error {
			for range 100 {
				p.Do(t.Context(), "CL.THROTTLE", key, 9, 10, 3600)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		allowed := 0
		for _, c := range cmds {
			list, err := c.(*goredis.Cmd).Int64Slice()
			if err != nil || len(list) != 5 {
				t.Fatalf("got %v %v, want five numbers", list, err)
			}
			allowed += int(1 - list[0])
		}
		if allowed != 10 {
			t.Errorf("RESP%d: got %d allowed, want the burst of 10", version, allowed)
		}
		d, err := r.Do(t.Context(), "WEIR.TAKE", "action", "post", "user", key).Result()
		if err != nil {
			t.Fatal(err)
		}
		switch d := d.(type) {
		case []any: // RESP2
			if version != 2 || d[0] != int64(1) || d[1] != "allow" {
				t.Errorf("RESP%d: got %v", version, d)
			}
		case map[any]any:
			if version != 3 || d["allowed"] != true || d["outcome"] != "allow" || d["retry_after"] != 0.0 {
				t.Errorf("RESP%d: got %v", version, d)
			}
		default:
			t.Errorf("RESP%d: got %T", version, d)
		}
		if err := r.Do(t.Context(), "GET", "a").Err(); err == nil || !strings.Contains(err.Error(), "unknown command") {
			t.Errorf("RESP%d: got %v", version, err)
		}
	}
}

// rueidis with its defaults, which turn on tracking, and calls of many goroutines, which
// it sends as pipelines.
func TestRueidis(t *testing.T) {
	t.Parallel()
	address := respService(t)
	r, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const calls = 200
	results := make(chan int64, calls)
	for range calls {
		go func() {
			list, err := r.Do(t.Context(), r.B().Arbitrary("CL.THROTTLE").Keys("rueidis").Args("49", "50", "3600").Build()).AsIntSlice()
			if err != nil || len(list) != 5 {
				t.Errorf("got %v %v", list, err)
				results <- 1
				return
			}
			results <- list[0]
		}()
	}
	allowed := int64(0)
	for range calls {
		allowed += 1 - <-results
	}
	if allowed != 50 {
		t.Errorf("got %d allowed, want the burst of 50", allowed)
	}
}
