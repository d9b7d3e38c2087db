package measure_test

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/benchmarks/internal/measure"
)

// Every goroutine calls, and all calls count.
func TestMeasureGoroutines(t *testing.T) {
	const goroutines = 5
	var calls atomic.Int64
	s := measure.MeasureGoroutines(func(string) bool { return calls.Add(1)%2 == 0 }, measure.NewKeys(1), measure.One(), 2, goroutines, 5*time.Millisecond)
	if n := calls.Load(); n == 0 || n%512 != 0 {
		t.Errorf("got %d calls, want whole batches", n)
	}
	if math.Abs(s.Admitted-0.5) > 0.01 || s.Nanoseconds <= 0 || s.Waiting < 0 || s.Waiting > 1 {
		t.Errorf("got %+v, want half of the calls admitted, a time, and a share", s)
	}
}

// A call that is late delays the calls behind it, and all of them count as late.
func TestOpenCountsDelays(t *testing.T) {
	const interval, pause = 100 * time.Microsecond, 20 * time.Millisecond
	first := true
	h := measure.Open(func(string) bool {
		if first {
			time.Sleep(pause)
			first = false
		}
		return true
	}, measure.NewKeys(1), measure.One(), interval, 2*pause)
	if got, want := h.TotalCount(), int64(2*pause/interval); got != want {
		t.Errorf("got %d calls, want %d: one each interval, late or not", got, want)
	}
	if h.Max() < int64(pause) || measure.Share(h, 0.75) < float64(pause/4) {
		t.Errorf("got max %v ns and a 75th percentile of %v, want the pause of %v in both", h.Max(), measure.Share(h, 0.75), pause)
	}
}

// Allocation in the background makes the garbage collector work.
func TestAllocateInBackground(t *testing.T) {
	before := measure.Collections()
	stop := measure.AllocateInBackground(10_000, 1<<30)
	for end := time.Now().Add(10 * time.Second); measure.Collections() < before+3 && time.Now().Before(end); {
		runtime.Gosched()
	}
	stop()
	if measure.Collections() < before+3 {
		t.Error("got less than three collections in ten seconds")
	}
}

func TestCPU(t *testing.T) {
	if runtime.GOOS != "linux" {
		if !math.IsNaN(measure.CPU(os.Getpid())) {
			t.Error("got a time, want none")
		}
		return
	}
	before := measure.CPU(os.Getpid())
	for n := 0; measure.CPU(os.Getpid())-before < 0.01; n++ {
		if n > 1e7 {
			t.Fatal("got no time for a busy process")
		}
	}
	now, most := measure.Resident(os.Getpid())
	if now < 1<<20 || most < now/2 {
		t.Errorf("got %v bytes, at most %v, want those of a process", now, most)
	}
	if !math.IsNaN(measure.CPU(-1)) {
		t.Error("got the time of a process that does not exist")
	}
}

// wrk sends the requests, over as many connections as it is told, for users in turn.
func TestWrk(t *testing.T) {
	if _, err := exec.LookPath("wrk"); err != nil && os.Getenv("WEIR_REQUIRE_PROGRAMS") != "1" {
		t.Skip("install wrk to run this test")
	}
	for _, c := range []struct{ request, path, user string }{
		{"take", "POST /v1/take", `{"attributes":{"action":"post","user":"5"}}`},
		{"check", "POST /v1/check", `{"attributes":{"action":"post","user":"5"}}`},
		{"batch", "POST /v1/batch", ""},
		{"browse", "GET /rule/browse", "action=post&user=5"},
		{"close", "GET /rule/browse", "action=post&user=5"},
	} {
		t.Run(c.request, func(t *testing.T) {
			var mu sync.Mutex
			conns, users, paths := map[string]bool{}, map[string]bool{}, map[string]bool{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				mu.Lock()
				conns[r.RemoteAddr], users[string(body)+r.URL.RawQuery], paths[r.Method+" "+r.URL.Path] = true, true, true
				mu.Unlock()
			}))
			load := measure.Wrk(server.Listener.Addr().String(), c.request, 2, time.Second)
			server.Close() // ends when no handler runs
			if load.Calls < 10 || load.PerSecond <= 0 || load.P99 <= 0 || len(users) < 10 || len(paths) != 1 || !paths[c.path] || c.user != "" && !users[c.user] {
				t.Errorf("got %+v, %d users and %v", load, len(users), paths)
			}
			if got := len(conns); c.request == "close" && got < 10 || c.request != "close" && got > 3 { // one asks first
				t.Errorf("got %d connections", got)
			}
		})
	}
}

func TestWrkFails(t *testing.T) {
	if _, err := exec.LookPath("wrk"); err != nil && os.Getenv("WEIR_REQUIRE_PROGRAMS") != "1" {
		t.Skip("install wrk to run this test")
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	err := measure.Try(func() { measure.Wrk(server.Listener.Addr().String(), "take", 1, time.Second) })
	if err == nil || !strings.Contains(err.Error(), "failed calls") {
		t.Errorf("got %v, want an error", err)
	}
}
