package redisstore_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
)

// TestProgramsTouchDeclaredKeysOnly plays traffic of all kinds while MONITOR shows
// what the programs call: a program calls commands on the keys of its EVALSHA
// only. Servers that lock keys, and clusters, rely on that.
func TestProgramsTouchDeclaredKeysOnly(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	m := monitor(t, n.Addr())
	c := connect(t, n.Addr())
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for _, s := range subjects(t) {
		calls := 60
		if s.crowd {
			calls = 400 // until members are too many for one string
		}
		for seed := range seeds {
			play(t, open(t, c), &s, seed, calls)
		}
	}
	s := redisstore.New(c, "")
	for _, subject := range subjects(t) {
		op := store.Op{Space: store.NewSpace("", subject.name, "rule", 0), Limit: subject.compiled[0], Key: []byte("key0")}
		if _, err := s.Read(t.Context(), &op); err != nil {
			t.Fatal(err)
		}
		if err := s.Forget(t.Context(), &op); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Keep(t.Context(), "register", 0, []string{"a"}, []string{"1"}); err != nil {
		t.Fatal(err)
	}
	if _, _, _, _, err := s.Kept(t.Context(), "register", [2]int64{}, 10); err != nil {
		t.Fatal(err)
	}
	n.Must("ECHO", "end")

	watch := declared{seen: map[string]int{}}
	for {
		line, err := m.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, `"ECHO" "end"`) {
			break
		}
		if problem := watch.see(line); problem != "" {
			t.Fatal(problem)
		}
	}
	for _, right := range documentedRights(t) {
		name := strings.ToUpper(strings.TrimPrefix(right, "+"))
		if right[0] != '+' || slices.Contains([]string{"EVALSHA", "EVAL", "PING"}, name) {
			continue
		}
		if watch.seen[name] == 0 {
			t.Errorf("no program called %s: the traffic is too small, or the right is not needed", name)
		}
	}
}

// The test above fails when it should.
func TestDeclaredSeesOtherKeys(t *testing.T) {
	t.Parallel()
	const program = `1.2 [0 127.0.0.1:1] "EVALSHA" "6dd2" "2" "a" "b\x00" "args"`
	tests := []struct {
		lines []string
		want  string
	}{
		{[]string{program, `1.2 [0 lua] "TIME"`, `1.2 [0 lua] "GET" "a"`, `1.2 [0 lua] "UNLINK" "a" "b\x00"`}, ""},
		{[]string{program, `1.2 [0 lua] "GET" "b"`}, `GET touches "b"`},
		{[]string{program, `1.2 [0 lua] "unlink" "a" "a:z"`}, `UNLINK touches "a:z"`},
		{[]string{program, `1.2 [0 lua] "SET" "args" "1"`}, `SET touches "args"`},
		{[]string{program, `1.2 [0 lua] "KEYS" "*"`}, "KEYS: a command that this test does not know"},
		{[]string{program, `1.2 [0 127.0.0.1:1] "EVALSHA" "6dd2" "1" "c"`, `1.2 [0 lua] "GET" "a"`}, `GET touches "a"`},
	}
	for _, tt := range tests {
		watch, got := declared{seen: map[string]int{}}, ""
		for _, line := range tt.lines {
			got += watch.see(line)
		}
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.lines, got, tt.want)
		}
	}
}

// declared reads the lines of MONITOR, and holds the keys of the program that runs.
type declared struct {
	keys []string
	seen map[string]int // how often programs called a command
}

// see returns what is wrong with a line, or an empty string.
func (d *declared) see(line string) (problem string) {
	_, rest, _ := strings.Cut(line, "[")
	from, rest, _ := strings.Cut(rest, "] ")
	args := words(rest)
	if len(args) == 0 {
		return fmt.Sprintf("%q: no command", line)
	}
	name := strings.ToUpper(args[0])
	if !strings.HasSuffix(from, " lua") {
		if name == "EVALSHA" || name == "EVAL" {
			keys, err := strconv.Atoi(args[2])
			if err != nil {
				return fmt.Sprintf("%q: %v", line, err)
			}
			d.keys = args[3 : 3+keys]
		}
		return ""
	}
	d.seen[name]++
	var touched []string
	switch name {
	case "TIME":
	case "UNLINK", "MGET":
		touched = args[1:]
	case "GET", "SET", "SETRANGE", "PEXPIRE", "PTTL", "ZADD", "ZCARD", "ZCOUNT", "ZRANGE", "ZRANGEBYSCORE", "ZREM", "ZSCORE",
		"HGET", "HSET", "HDEL", "HGETALL":
		touched = args[1:2]
	default:
		return name + ": a command that this test does not know"
	}
	for _, key := range touched {
		if !slices.Contains(d.keys, key) {
			return fmt.Sprintf("%s touches %q: the program declares %q", name, key, d.keys)
		}
	}
	return ""
}

// words returns the quoted words of a line.
func words(line string) (all []string) {
	for {
		line = strings.TrimSpace(line)
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			return all
		}
		word, err := strconv.Unquote(quoted)
		if err != nil {
			return all
		}
		all = append(all, word)
		line = line[len(quoted):]
	}
}

// monitor returns the lines of MONITOR on the server at addr.
func monitor(t *testing.T, addr string) *bufio.Reader {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	if line, err := r.ReadString('\n'); err != nil || line != "+OK\r\n" {
		t.Fatalf("MONITOR: got %q and error %v", line, err)
	}
	return r // what is not read yet waits in the server
}
