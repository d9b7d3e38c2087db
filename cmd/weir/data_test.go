package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// kills is how often TestKilled kills the service. make kills sets 1000.
var kills = flag.Int("kills", 5, "how often TestKilled kills the service")

const dataRules = `rules:
  - name: forever
    per: [user]
    limit: 1_000_000_000
    window: ever
`

// users are the keys of the load.
const users = 20

// loaded is a service under load, and what its callers know.
type loaded struct {
	*process
	client http.Client

	// enough is closed when wanted takes were answered.
	enough chan struct{}
	wanted int

	mu    sync.Mutex
	asked [users]int64       // takes that were sent
	acked [users][]time.Time // when each answer was received
	all   int                // of acked
}

// run takes for random users until ctx is done or the service is gone.
func (l *loaded) run(ctx context.Context, goroutines int) *sync.WaitGroup {
	l.client.Transport = &http.Transport{MaxIdleConnsPerHost: goroutines}
	var group sync.WaitGroup
	for range goroutines {
		group.Go(func() {
			for ctx.Err() == nil {
				user := rand.IntN(users)
				l.mu.Lock()
				l.asked[user]++
				l.mu.Unlock()
				if !l.take(user) {
					return
				}
				l.mu.Lock()
				l.acked[user] = append(l.acked[user], time.Now())
				if l.all++; l.all == l.wanted {
					close(l.enough)
				}
				l.mu.Unlock()
			}
		})
	}
	return &group
}

// take takes a hit of a user, and reports whether it was answered.
func (l *loaded) take(user int) bool {
	body := fmt.Sprintf(`{"attributes": {"user": "u%d"}}`, user)
	resp, err := l.client.Post(l.api+"/v1/take", "application/json", strings.NewReader(body))
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode == http.StatusOK
}

// counts returns how many takes of each user were sent, and answered before at.
func (l *loaded) counts(at time.Time) (asked, acked [users]int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for user := range acked {
		for _, when := range l.acked[user] {
			if when.Before(at) {
				acked[user]++
			}
		}
	}
	return l.asked, acked
}

// used returns what the service has counted for each user.
func used(t *testing.T, api string) (n [users]int64) {
	t.Helper()
	for user := range n {
		var usage struct{ Used int64 }
		get(t, fmt.Sprintf("%s/v1/usage?rule=forever&user=u%d", api, user), &usage)
		n[user] = usage.Used
	}
	return n
}

// get reads an answer, when the counters are loaded.
func get(t *testing.T, url string, into any) {
	t.Helper()
	redistest.Eventually(t, "the counters are loaded", func() bool {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable {
			return false
		}
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("GET %s: got %s, %v", url, resp.Status, err)
		}
		return true
	})
}

var lagSeconds = regexp.MustCompile(`(?m)^weir_data_lag_seconds (\S+)$`)

// flushed returns an instant before which all that was answered is in the files.
func (l *loaded) flushed() (at time.Time, ok bool) {
	asked := time.Now()
	resp, err := http.Get(l.admin + "/metrics")
	if err != nil {
		return at, false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	m := lagSeconds.FindSubmatch(text)
	if err != nil || m == nil {
		return at, false
	}
	lag, err := strconv.ParseFloat(string(m[1]), 64)
	return asked.Add(-time.Duration(lag * float64(time.Second))), err == nil
}

// A service that is killed at any instant under load, again and again: what the next
// one has of each key is at least what was answered before the last flush began, and
// at most what was asked for. No start is refused, and nothing is reported as damaged.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, sync := range []string{"interval", "always", "os"} {
		t.Run(sync, func(t *testing.T) {
			t.Parallel()
			testKilled(t, sync, *kills)
		})
	}
}

func testKilled(t *testing.T, sync string, kills int) {
	dir := t.TempDir()
	var before [users]int64
	worst, lost, answered := time.Duration(0), int64(0), int64(0)
	for round := range kills {
		l := &loaded{process: startProcess(t, "", dataRules, "--data", dir, "--sync", sync)}
		if got := used(t, l.api); round > 0 && got != before {
			t.Fatalf("round %d: got %v after another start, want %v", round, got, before)
		}
		ctx, stop := context.WithCancel(t.Context())
		group := l.run(ctx, 8)
		end := time.Now().Add(time.Duration(rand.IntN(int(600 * time.Millisecond))))
		flushed := time.Time{}
		for time.Now().Before(end) {
			if at, ok := l.flushed(); ok {
				flushed = at
			}
		}
		if sync == "always" {
			flushed = time.Now()
		}
		killed := time.Now()
		_ = l.Process.Kill()
		stop()
		group.Wait()
		l.stopped = true
		_ = l.Wait()
		worst = max(worst, killed.Sub(flushed))
		asked, acked := l.counts(flushed)
		_, all := l.counts(killed)

		next := startProcess(t, "", dataRules, "--data", dir, "--sync", sync)
		after := used(t, next.api)
		for user, got := range after {
			if least, most := before[user]+acked[user], before[user]+asked[user]; got < least || got > most {
				t.Errorf("round %d, user %d: got %d, want %d to %d", round, user, got, least, most)
			}
		}
		sum := int64(0)
		for user, n := range all {
			sum += n - (after[user] - before[user])
			answered += n
		}
		if lost = max(lost, sum); (round+1)%100 == 0 {
			t.Logf("%d kills, at most %d takes lost", round+1, lost)
		}
		before = after
		if text := next.logs.String(); strings.Contains(text, "damaged") || strings.Contains(text, "missing") {
			t.Errorf("round %d: got\n%s", round, text)
		}
		next.kill()
	}
	t.Logf("%d kills with --sync %s: %d takes were answered; of those before a kill at most %d were lost; the last flush that a caller knows of had begun at most %v before it",
		kills, sync, answered, lost, worst)
}

// A deploy: SIGTERM while callers take, and a new process on the same directory. It
// has exactly what was answered.
func TestDeployLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var want [users]int64
	for range 3 {
		l := &loaded{process: startProcess(t, "", dataRules, "--data", dir, "--sync-interval", "1h"), enough: make(chan struct{}), wanted: 500}
		if got := used(t, l.api); got != want {
			t.Fatalf("got %v, want %v", got, want)
		}
		group := l.run(t.Context(), 8)
		<-l.enough
		if err := l.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		group.Wait() // until it accepts no more connections
		l.stopped = true
		if err := l.Wait(); err != nil {
			t.Fatalf("the service ends with %v\n%s", err, l.logs.String())
		}
		_, acked := l.counts(time.Now().Add(time.Hour))
		for user := range want {
			want[user] += acked[user]
		}
	}
	if got := used(t, startProcess(t, "", dataRules, "--data", dir).api); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// manyKeys makes a directory whose counters take a while to load.
func manyKeys(t *testing.T, keys int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s, err := datadir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	limit := window.MustCompile(window.Limit{Quota: 5, Window: window.Ever()})
	space := store.NewSpace("", "many", "many", 0)
	for key := range keys {
		op := store.Op{Space: space, Limit: limit, Key: []byte(strconv.Itoa(key)), N: 1}
		if err := store.Do(t.Context(), s, store.Take, []store.Op{op}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The listeners are open at once. Until the counters are loaded, callers get 503 and
// when to come again.
func TestServiceWhileLoading(t *testing.T) {
	t.Parallel()
	dir := manyKeys(t, 400_000)
	refused := 0
	for refused == 0 { // a busy machine may come too late to meet the loading
		p := startProcess(t, "", dataRules, "--data", dir)
		for refusedWhileLoading(t, p) {
			refused++
		}
		p.end(t)
	}
}

// refusedWhileLoading takes, and reports whether that was refused.
func refusedWhileLoading(t *testing.T, p *process) bool {
	t.Helper()
	resp, err := http.Post(p.api+"/v1/take", "application/json", strings.NewReader(`{"attributes": {"user": "1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return false
	}
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" || !bytes.Contains(body, []byte("still being loaded")) {
		t.Fatalf("while loading: got %s, Retry-After %q\n%s", resp.Status, resp.Header.Get("Retry-After"), body)
	}
	health, err := http.Get(p.admin + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	health.Body.Close()
	if health.StatusCode != http.StatusOK {
		t.Errorf("/healthz while loading: got %s", health.Status)
	}
	return true
}

// With --serve-while-loading the rules follow their on_outage, and what is counted
// meanwhile is added to what is loaded, also if the process is told to end before.
func TestServeWhileLoading(t *testing.T) {
	t.Parallel()
	dir := manyKeys(t, 1_000_000)
	first := &loaded{process: startProcess(t, "", dataRules, "--data", dir)}
	first.ready(t)
	if !first.take(1) {
		t.Fatal("a take was not answered")
	}
	first.end(t)
	hits := int64(1)
	counted := func(p *process) {
		t.Helper()
		var usage struct{ Used int64 }
		redistest.Eventually(t, "the hits of before are loaded", func() bool {
			get(t, p.api+"/v1/usage?rule=forever&user=u1", &usage)
			return usage.Used == hits
		})
	}
	for _, ends := range []bool{false, true} {
		for meanwhile := false; !meanwhile; { // see TestServiceWhileLoading
			p := startProcess(t, "", dataRules, "--data", dir, "--serve-while-loading")
			meanwhile = p.degraded(t)
			if hits++; !ends {
				counted(p)
			}
			http.DefaultClient.CloseIdleConnections() // for which the end would wait
			p.end(t)
		}
	}
	counted(startProcess(t, "", dataRules, "--data", dir))
}

const outageRules = dataRules + `  - {name: jobs, per: [job], limit: 10, window: 1d, hold: 1h}
  - {name: open, per: [page], limit: 0, window: 1d, on_outage: allow}
`

// outageWith makes a directory that takes a while to load, and in which an outage of the shared store has left a
// hold. It returns the arguments of a service whose store is still unavailable, and the receipt.
func outageWith(t *testing.T, keys int) (args []string, receipt string) {
	t.Helper()
	args = []string{"--store", "redis://127.0.0.1:1", "--nodes", "1", "--data", manyKeys(t, keys)}
	p := startProcess(t, "", outageRules, args...)
	p.ready(t)
	d, text := p.post(t, "/v1/take", `{"attributes": {"job": "before"}}`)
	if d.Receipt == "" {
		t.Fatalf("got no receipt: %s", text)
	}
	p.end(t)
	return args, d.Receipt
}

// settle settles the hold of a job, and reports whether the service has found it. It reports
// false, too, if that needs counters that are still being loaded.
func (p *process) settle(t *testing.T, job, receipt string) (found, loading bool) {
	t.Helper()
	resp, err := http.Post(p.api+"/v1/settle", "application/json", strings.NewReader(fmt.Sprintf(`{"attributes": {"job": %q}, "receipt": %q}`, job, receipt)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err == nil && resp.StatusCode == http.StatusOK:
		return bytes.Contains(text, []byte(`"held":true`)), false
	case err == nil && resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "1":
		return false, true
	}
	t.Fatalf("settle: got %s, %v\n%s", resp.Status, err, text)
	return false, false
}

// Without its shared store a service is not ready until the counters of the directory are loaded. What needs
// them is refused: takes that memory has to decide, and the ends of holds that may be there.
func TestOutageWhileLoading(t *testing.T) {
	t.Parallel()
	args, receipt := outageWith(t, 400_000)
	for refused := false; !refused; { // see TestServiceWhileLoading
		p := startProcess(t, "", outageRules, args...)
		refused = refusedWhileLoading(t, p)
		d, _ := p.post(t, "/v1/take", `{"attributes": {"page": "1"}}`)
		notReady := p.get("/readyz") == ""
		if _, loading := p.settle(t, "nothing of", receipt); !loading {
			refused = false // too late to know what else has met the loading
		} else if !notReady {
			t.Error("got ready while loading")
		}
		if !d.Allowed || !d.Degraded {
			t.Errorf("got %+v of a rule that allows, want allowed, degraded", d)
		}
		if p.ready(t); refused {
			if found, _ := p.settle(t, "before", receipt); !found {
				t.Error("got no hold of before after the loading")
			}
		}
		http.DefaultClient.CloseIdleConnections()
		p.end(t)
	}
}

// What is wrong with a directory is said in one line, and the service does not start.
func TestBadDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startProcess(t, "", dataRules, "--data", dir)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:  "weir: --data: data directory: " + dir + ": another process uses this directory; end it, or name another directory\n",
		file: "weir: --data: data directory: " + file + " is not a directory\n",
	} {
		cmd := exec.Command("weir", "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", path)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // without variables of the tests, of which weir warns
		out, err := cmd.CombinedOutput()
		if err == nil || string(out) != want {
			t.Errorf("got %v\n%s\nwant\n%s", err, out, want)
		}
	}
}

// A small disk that is full: counting goes on, and so do the counters when there is
// room again. It needs the right to mount a file system.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := mountSmall(dir, 256<<10); err != nil {
		t.Skipf("no right to mount a small file system: %v", err)
	}
	t.Cleanup(func() { unmount(t, dir) })
	data := filepath.Join(dir, "data")
	l := &loaded{process: startProcess(t, "", dataRules, "--data", data, "--sync-interval", "10ms")}
	var seen atomic.Int64
	takes := func(n int64) {
		for range n {
			user := int(seen.Add(1)) % users
			if !l.take(user) {
				t.Fatal("a take was not answered")
			}
		}
	}
	l.ready(t)
	takes(users)
	l.waitFor(t, "weir_data_written_keys_total", func(n float64) bool { return n >= users })
	filler := filepath.Join(dir, "filler")
	if err := fillDisk(filler); err != nil {
		t.Fatal(err)
	}
	for l.metric(t, "weir_data_failing") == 0 {
		takes(10 * users)
	}
	takes(users)
	if text := l.logs.String(); !strings.Contains(text, "cannot write, counting goes on in memory") || !strings.Contains(text, "no space left on device") {
		t.Errorf("got\n%s", text)
	}
	for range 2 { // an override is not promised
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, l.api+"/v1/overrides", strings.NewReader(`{"rule":"forever","attributes":{"user":"u1"},"limit":7}`))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("got %s to an override, want 503", resp.Status)
		}
	}
	want := used(t, l.api)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	l.waitFor(t, "weir_data_failing", func(n float64) bool { return n == 0 })
	l.waitFor(t, "weir_data_lag_seconds", func(n float64) bool { return n < 0.5 })
	l.kill()
	if got := used(t, startProcess(t, "", dataRules, "--data", data).api); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A file system that is read-only: its counters are loaded, and counting goes on. When it
// is writable again, nothing is lost. It needs the right to mount a file system.
func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := mountSmall(dir, 4<<20); err != nil {
		t.Skipf("no right to mount a small file system: %v", err)
	}
	t.Cleanup(func() { unmount(t, dir) })
	data := filepath.Join(dir, "data")
	start := func() *loaded {
		return &loaded{process: startProcess(t, "", dataRules, "--data", data, "--sync-interval", "10ms")}
	}
	takes := func(l *loaded) {
		l.ready(t)
		for user := range users {
			if !l.take(user) {
				t.Fatal("a take was not answered")
			}
		}
	}
	l := start()
	takes(l)
	l.end(t)
	if err := remount(dir, true); err != nil {
		t.Fatal(err)
	}
	l = start()
	takes(l)
	l.waitFor(t, "weir_data_failing", func(n float64) bool { return n == 1 })
	if text := l.logs.String(); !strings.Contains(text, "cannot write, counting goes on in memory") || !strings.Contains(text, "read-only file system") {
		t.Errorf("got\n%s", text)
	}
	want := used(t, l.api)
	if want[0] != 2 {
		t.Errorf("got %d used, want 2", want[0])
	}
	if err := remount(dir, false); err != nil {
		t.Fatal(err)
	}
	l.waitFor(t, "weir_data_failing", func(n float64) bool { return n == 0 })
	l.kill()
	if got := used(t, start().api); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// waitFor waits until a metric is as wanted.
func (p *process) waitFor(t *testing.T, name string, wanted func(float64) bool) {
	t.Helper()
	redistest.Eventually(t, name+" is as wanted", func() bool { return wanted(p.metric(t, name)) })
}

// With a shared store that is unavailable, the directory keeps what this instance
// counts by itself.
func TestDataKeepsOutages(t *testing.T) {
	t.Parallel()
	const rules = `rules:
  - name: forever
    per: [user]
    limit: 3
    window: ever
`
	dir := t.TempDir()
	args := []string{"--store", "redis://127.0.0.1:1", "--nodes", "1", "--data", dir}
	for process := range 2 {
		p := startProcess(t, "", rules, args...)
		p.ready(t)
		for hit := range 2 {
			d, _ := p.post(t, "/v1/take", `{"attributes": {"user": "1"}}`)
			if want := 2*process+hit < 3; d.Allowed != want || !d.Degraded {
				t.Errorf("process %d, hit %d: got %+v, want allowed %v, degraded", process, hit, d, want)
			}
		}
		p.end(t)
	}
}
