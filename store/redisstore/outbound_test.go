package redisstore_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/httplimit/outbound"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
)

// host is a server that requests are sent to. If it has channels, it closes begun, waits for answer, and complains.
type host struct {
	begun, answer chan struct{}
	came          atomic.Int64
}

func (h *host) RoundTrip(r *http.Request) (*http.Response, error) {
	h.came.Add(1)
	status, header := http.StatusOK, http.Header{}
	if h.begun != nil {
		close(h.begun)
		<-h.answer
		status = http.StatusTooManyRequests
		header.Set("Retry-After", "3600")
	}
	return &http.Response{StatusCode: status, Header: header, Body: http.NoBody, Request: r}, nil
}

// Two processes send to one host under a limit that they share, also during an outage: each then sends its share.
func TestOutboundLimitIsShared(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	api := &host{}
	var processes []*outbound.Transport
	for range 2 {
		m := weir.MustLimiter(weir.Sliding(6, time.Hour), weir.WithName("api"),
			weir.WithStore(openURL(t, "redis://"+n.Addr()+"?timeout=20s")), weir.WithNodes(func() int { return 2 }))
		t.Cleanup(func() { m.Close() })
		processes = append(processes, &outbound.Transport{Limiter: m, Base: api})
	}
	// sendAll sends 8 requests from each process at once, and returns how many were sent.
	sendAll := func(url string) int64 {
		before := api.came.Load()
		var sending sync.WaitGroup
		for _, p := range processes {
			for range 8 {
				sending.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
					defer cancel()
					r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
					if err != nil {
						t.Error(err)
						return
					}
					answer, err := p.RoundTrip(r)
					if err == nil {
						err = answer.Body.Close()
					}
					if err != nil && !errors.Is(err, weir.ErrWouldWait) {
						t.Error(err)
					}
				})
			}
		}
		sending.Wait()
		return api.came.Load() - before
	}
	for _, step := range []struct {
		url  string
		want int64
	}{{"http://a/1", 6}, {"http://A:80/2", 0}, {"http://b", 6}} {
		if got := sendAll(step.url); got != step.want {
			t.Errorf("%s: got %d requests sent, want %d", step.url, got, step.want)
		}
	}
	n.Kill()
	if got := sendAll("http://c"); got != 6 {
		t.Errorf("in an outage: got %d requests sent, want 3 by each process", got)
	}
}

// observedRefunds is an observer that gets what is used after each refund.
type observedRefunds chan int64

func (o observedRefunds) Decided(_ context.Context, verb store.Verb, d *weir.Decision, _ time.Duration) {
	if verb == store.Refund {
		o <- d.Usages[0].Used
	}
}

func (observedRefunds) Failed(context.Context, store.Verb, error) {}
func (observedRefunds) Outage(context.Context, store.Verb, error) {}

// A host complains while the next request waits for Redis. That request gives its hit back, and is not sent before the
// host's wait is over.
func TestOutboundGivesBackToTheSharedLimit(t *testing.T) {
	t.Parallel()
	proxy := redistest.Through(t, redistest.Server(t))
	s := openURL(t, "redis://"+proxy.Addr()+"?timeout=20s")
	connected(t, s, 1)
	refunds := make(observedRefunds, 1)
	m := weir.MustLimiter(weir.Sliding(10, time.Hour), weir.WithName("api"), weir.WithStore(s), weir.WithObserver(refunds))
	t.Cleanup(func() { m.Close() })
	api := &host{begun: make(chan struct{}), answer: make(chan struct{})}
	tr := &outbound.Transport{Limiter: m, Base: api}
	send := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://a", http.NoBody)
		if err != nil {
			return err
		}
		answer, err := tr.RoundTrip(r)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- send(t.Context()) }()
	<-api.begun
	proxy.Hold()
	go func() { second <- send(ctx) }()
	redistest.Eventually(t, "the second request waits for Redis", func() bool { return s.Nodes()[0].InFlight == 1 })
	close(api.answer)
	if err := <-first; err != nil {
		t.Error(err)
	}
	proxy.Heal()
	if used := <-refunds; used != 1 {
		t.Errorf("got %d hits counted after the second request gave its hit back, want 1", used)
	}
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a canceled wait for the host", err)
	}
	if got := api.came.Load(); got != 1 {
		t.Errorf("got %d requests sent, want one", got)
	}
}
