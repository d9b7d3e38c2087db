package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/httplimit/outbound"
)

// server answers requests in no real time, and keeps when they came.
type server struct {
	answer func(r *http.Request, n int) (status int, retryAfter string) // n is the number of the request, from 0
	takes  time.Duration

	mu       sync.Mutex
	begun    time.Time
	came     []time.Duration // guarded by mu; after begun
	inFlight int             // guarded by mu
	most     []int           // guarded by mu; in flight when each request came
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	n := len(s.came)
	s.came = append(s.came, time.Since(s.begun))
	s.inFlight++
	s.most = append(s.most, s.inFlight)
	s.mu.Unlock()
	time.Sleep(s.takes)
	s.mu.Lock()
	s.inFlight--
	s.mu.Unlock()
	status, after := http.StatusOK, ""
	if s.answer != nil {
		status, after = s.answer(r, n)
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {after}}, Body: http.NoBody, Request: r}, nil
}

// send sends a request and reports its error.
func send(ctx context.Context, t *outbound.Transport, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := t.RoundTrip(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func want(t *testing.T, got []time.Duration, seconds ...float64) {
	t.Helper()
	var all []time.Duration
	for _, s := range seconds {
		all = append(all, time.Duration(s*float64(time.Second)))
	}
	if !slices.Equal(got, all) {
		t.Errorf("got requests at %v, want %v", got, all)
	}
}

func TestLimitPerHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{begun: time.Now()}
		tr := outbound.PerHost(2, time.Second)
		tr.Base = s
		for _, url := range []string{"http://a", "http://A:80/x", "http://b", "http://a:8080", "https://a", "https://a:443", "http://a"} {
			if err := send(t.Context(), tr, url); err != nil {
				t.Fatal(err)
			}
		}
		// http://a, http://a:80 and https://a are one host.
		want(t, s.came, 0, 0, 0, 0, 1, 1, 2)
		if n := tr.Hosts(); n != 0 {
			t.Errorf("got %d hosts remembered, want none that have not complained", n)
		}
	})
}

// The host gets nothing before the wait that it states, and a request that cannot wait so long fails at
// once, unsent.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{begun: time.Now(), answer: func(r *http.Request, n int) (int, string) {
				if n == 0 {
					return status, "30"
				}
				return http.StatusOK, ""
			}}
			tr := &outbound.Transport{Base: s}
			if err := send(t.Context(), tr, "http://a"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second)
			defer cancel()
			body := &closing{Reader: strings.NewReader("x")}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://a", body)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := tr.RoundTrip(r)
			if err == nil {
				answer.Body.Close()
			}
			if !errors.Is(err, weir.ErrWouldWait) || !body.closed || !strings.Contains(err.Error(), "outbound: a: ") {
				t.Errorf("got %v, closed %v, want ErrWouldWait with the host, and the body closed", err, body.closed)
			}
			for _, url := range []string{"http://b", "http://a", "http://a"} {
				if err := send(t.Context(), tr, url); err != nil {
					t.Fatal(err)
				}
			}
			want(t, s.came, 0, 0, 30, 30)
		})
	}
}

// closing is a body that knows that it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

// Without a wait in the answer, waits double up to a minute, and begin again after a success. No stated wait is
// longer than an hour.
func TestBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{begun: time.Now(), answer: func(r *http.Request, n int) (int, string) {
			switch {
			case n == 8:
				return http.StatusOK, ""
			case n == 10:
				return http.StatusTooManyRequests, "1000000"
			}
			return http.StatusTooManyRequests, ""
		}}
		tr := &outbound.Transport{Base: s}
		for range 12 {
			if err := send(t.Context(), tr, "http://a"); err != nil {
				t.Fatal(err)
			}
		}
		var pauses []time.Duration
		for i := 1; i < len(s.came); i++ {
			pauses = append(pauses, s.came[i]-s.came[i-1])
		}
		want(t, pauses, 1, 2, 4, 8, 16, 32, 60, 60, 0, 1, 3600)
	})
}

// After a complaint half as many requests are in flight, and one more after each success. The answers to
// other requests of the burst change nothing.
func TestFewerInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{begun: time.Now(), takes: time.Second, answer: func(r *http.Request, n int) (int, string) {
			if n < 8 {
				return http.StatusTooManyRequests, "10"
			}
			return http.StatusOK, ""
		}}
		tr := &outbound.Transport{Base: s}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { _ = send(t.Context(), tr, "http://a") })
		}
		all.Wait()
		for range 30 {
			all.Go(func() { _ = send(t.Context(), tr, "http://a") })
		}
		all.Wait()
		want(t, s.came[8:], 11, 11, 11, 11, 12, 12, 12, 12, 12, 12, 12, 12, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 14, 14)
		if n := slices.Max(s.most[8:]); n != 16 {
			t.Errorf("got at most %d in flight, want 4, 8 and 16", n)
		}
	})
}

// However often a host complains, and however many requests wait meanwhile, the limit holds.
func TestLimitHoldsAcrossWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{begun: time.Now(), takes: 10 * time.Millisecond, answer: func(r *http.Request, n int) (int, string) {
			if n%17 == 5 {
				return http.StatusTooManyRequests, "7"
			}
			return http.StatusOK, ""
		}}
		tr := outbound.PerHost(10, 5*time.Second)
		tr.Base = s
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				if err := send(t.Context(), tr, "http://a"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(s.came) != 200 {
			t.Errorf("got %d requests, want 200", len(s.came))
		}
		for i := 10; i < len(s.came); i++ {
			if s.came[i]-s.came[i-10] < 5*time.Second {
				t.Fatalf("got requests %d to %d at %v to %v, want at most 10 in 5s", i-10, i, s.came[i-10], s.came[i])
			}
		}
	})
}

// A request that is given up leaves its place to the next.
func TestGivingUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{begun: time.Now(), takes: time.Second, answer: func(r *http.Request, n int) (int, string) {
			if n == 0 {
				return http.StatusTooManyRequests, "5"
			}
			return http.StatusOK, ""
		}}
		tr := &outbound.Transport{Base: s}
		if err := send(t.Context(), tr, "http://a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if err := send(ctx, tr, "http://a"); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the end of the context", err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			if err := send(t.Context(), tr, "http://a"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		cancel()
		all.Wait()
		want(t, s.came, 0, 6)
		if err := send(ctx, tr, "http://a"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the end of the context", err)
		}
	})
}

// Hosts that complain are forgotten, and there is a bound on them.
func TestForgetting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{begun: time.Now(), answer: func(r *http.Request, _ int) (int, string) { return http.StatusTooManyRequests, "60" }}
		tr := &outbound.Transport{Base: s}
		for i := range 10_100 {
			if err := send(t.Context(), tr, fmt.Sprint("http://a", i)); err != nil {
				t.Fatal(err)
			}
		}
		if n := tr.Hosts(); n != 10_000 {
			t.Errorf("got %d hosts remembered, want 10,000", n)
		}
		time.Sleep(2 * time.Minute)
		for i := range 10_001 {
			if err := send(t.Context(), tr, fmt.Sprint("http://b", i)); err != nil {
				t.Fatal(err)
			}
		}
		if n := tr.Hosts(); n != 10_000 {
			t.Errorf("got %d hosts remembered, want the new ones", n)
		}
		time.Sleep(time.Hour)
		if err := send(t.Context(), tr, "http://b7"); err != nil || s.came[len(s.came)-1] < time.Hour {
			t.Errorf("got %v at %v", err, s.came[len(s.came)-1])
		}
	})
}

// failing is a Base whose requests fail or panic.
type failing struct{ panics bool }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) {
	if f.panics {
		panic("base")
	}
	return nil, io.ErrUnexpectedEOF
}

// An error of Base is returned as it is, and is no complaint; a panic leaves no request in flight.
func TestErrors(t *testing.T) {
	t.Parallel()
	tr := &outbound.Transport{Base: failing{}}
	if err := send(t.Context(), tr, "http://a"); !errors.Is(err, io.ErrUnexpectedEOF) || tr.Hosts() != 0 {
		t.Errorf("got %v and %d hosts, want the error of the base", err, tr.Hosts())
	}
	tr = &outbound.Transport{Base: failing{true}}
	func() {
		defer func() { _ = recover() }()
		_ = send(t.Context(), tr, "http://a")
	}()
	if tr.Hosts() != 0 {
		t.Errorf("got %d hosts, want no request in flight", tr.Hosts())
	}
	answer, err := new(outbound.Transport).RoundTrip(&http.Request{})
	if err == nil {
		answer.Body.Close()
		t.Error("got no error for a request without a URL")
	}
}
