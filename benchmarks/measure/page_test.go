package measure_test

import (
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/benchmarks/measure"
)

// Every goroutine of a crowd calls, and all calls count.
func TestCrowd(t *testing.T) {
	const goroutines = 5
	var calls atomic.Int64
	s := measure.Crowd(func(string) bool { return calls.Add(1)%2 == 0 }, measure.NewKeys(1), measure.One(), 2, goroutines, 5*time.Millisecond)
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
	if got, want := h.Len(), uint64(2*pause/interval); got != want {
		t.Errorf("got %d calls, want %d: one each interval, late or not", got, want)
	}
	if h.Max() < pause || h.At(0.75) < pause/4 {
		t.Errorf("got max %v and a 75th percentile of %v, want the pause of %v in both", h.Max(), h.At(0.75), pause)
	}
}

// The heap beside calls makes the garbage collector work.
func TestBeside(t *testing.T) {
	before := measure.Collections()
	b := measure.NewBeside(10_000, 1<<30)
	for end := time.Now().Add(10 * time.Second); measure.Collections() < before+3 && time.Now().Before(end); {
		runtime.Gosched()
	}
	b.Close()
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

// Both clients send what they are told, over as many connections as they are told.
func TestHTTP(t *testing.T) {
	var mu sync.Mutex
	conns, users := map[string]bool{}, map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		conns[r.RemoteAddr], users[string(body)] = true, true
		mu.Unlock()
		if strings.HasSuffix(string(body), "7") {
			w.(http.Flusher).Flush() // the answer is chunked
		}
		fmt.Fprint(w, strings.Repeat("x", len(body)))
	}))
	defer server.Close()
	addr := server.Listener.Addr().String()
	request := func(b []byte, i int) []byte {
		n := strconv.Itoa(i)
		return fmt.Appendf(b, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(n), n)
	}
	load, err := measure.HTTP(addr, request, 3, false, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if len(conns) != 3 || len(users) < 10 || load.Calls < 10 || load.PerSecond <= 0 {
		t.Errorf("got %d connections, %d users and %+v, want three connections and many users", len(conns), len(users), load)
	}
	if _, err := measure.HTTP(addr, request, 2, true, 20*time.Millisecond); err != nil || len(conns) < 6 {
		t.Errorf("got %d connections and %v, want one for each call", len(conns), err)
	}
	if !measure.Wrk() {
		return
	}
	clear(users)
	script := `request = function() return wrk.format("POST", "/", nil, "wrk" .. user()) end`
	if load, err = measure.WrkHTTP(addr, script, 2, time.Second); err != nil || load.Calls < 10 || len(users) < 10 || !users["wrk5"] {
		t.Errorf("got %+v and %v, want calls of many users", load, err)
	}
}

func TestHTTPFails(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	request := func(b []byte, _ int) []byte { return append(b, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"...) }
	_, err := measure.HTTP(server.Listener.Addr().String(), request, 1, false, time.Second)
	if err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("got %v, want an error with the status", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if _, err := measure.HTTP(l.Addr().String(), request, 1, false, time.Second); err == nil {
		t.Error("got no error from an address where nothing listens")
	}
}
