package outbound

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/headers"
)

// Transport is an [http.RoundTripper] that keeps requests to each host under a limit. A request
// waits until the limit of its host admits it. It fails at once with [weir.ErrWouldWait] if
// its context ends before, so give requests a deadline.
//
// A Transport adapts to a host that answers with 429 Too Many Requests or 503 Service Unavailable:
//
//   - It sends the host nothing before the wait of Retry-After is over, an hour at most. If the answer states no wait, it is a
//     second, and twice as long for each such answer in a row, up to a minute.
//   - After that, at most half as many requests as before are in flight, at least one, and one more
//     for each other answer.
//
// A minute after the last wait, a host without requests is forgotten; so is any host without requests while there are more than
// 10,000. Each Transport adapts on its own. The limit is that of all processes that share the store of the Limiter.
//
// A Transport is safe for concurrent use. Its fields must not be changed after the first
// request.
type Transport struct {
	// Limiter limits the requests to each host. The key is the host in lower case, with its port
	// unless that is the usual one of the scheme. Nil: there is no limit, and the
	// transport only adapts.
	Limiter *weir.Limiter

	// Base sends the requests. Nil means [http.DefaultTransport].
	Base http.RoundTripper

	mu    sync.Mutex
	hosts map[string]*host // guarded by mu
	sweep int              // guarded by mu; the number of hosts at which those without news are dropped
}

// PerHost returns a Transport that sends each host at most quota requests in each window, and
// counts in this process's memory. It panics if the quota or the window is invalid.
func PerHost(quota int64, window time.Duration) *Transport {
	return &Transport{Limiter: weir.MustLimiter(weir.Sliding(quota, window))}
}

const (
	longestPause   = time.Hour   // of those that a host states
	longestBackoff = time.Minute // of those that no host states
	remembered     = time.Minute // after the last pause
	maxHosts       = 10_000
)

// host is what a Transport knows of a host. Its fields are guarded by the mu of the
// Transport.
type host struct {
	inFlight   int // including requests that wait for the limit
	most       int // in flight; 0: no bound
	until      time.Time
	complained time.Time // when the last complaint came, except for answers to requests that were sent before another one
	inRow      int       // complaints without a success between them
	queue      []chan struct{}
	timer      *time.Timer // grants the queue at until; nil: it does not run
}

// RoundTrip implements [http.RoundTripper]. It sends r once, after its wait. The error is that of Base,
// that of the context, or wraps [weir.ErrWouldWait] or another error of the Limiter; in all but the first case
// nothing was sent.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	if r.URL == nil {
		return base.RoundTrip(r) // which refuses it
	}
	name := hostOf(r)
	h, err := t.begin(r.Context(), name)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as the contract of RoundTripper has it
		}
		return nil, fmt.Errorf("outbound: %s: %w", name, err)
	}
	var answer *http.Response
	sent := time.Now()
	defer func() { t.end(name, h, sent, answer) }()
	answer, err = base.RoundTrip(r)
	return answer, err
}

// hostOf returns the key of the host that r is for.
func hostOf(r *http.Request) string {
	usual := ":80"
	if r.URL.Scheme == "https" {
		usual = ":443"
	}
	return strings.TrimSuffix(strings.ToLower(r.URL.Host), usual)
}

// begin returns when a request may be sent. The caller calls end after it.
func (t *Transport) begin(ctx context.Context, name string) (*host, error) {
	for {
		h, err := t.enter(ctx, name)
		if err != nil || t.Limiter == nil {
			return h, err
		}
		if err := t.Limiter.Wait(ctx, name); err != nil {
			t.end(name, h, time.Time{}, nil)
			return nil, err
		}
		t.mu.Lock()
		paused := time.Now().Before(h.until)
		t.mu.Unlock()
		if !paused {
			return h, nil
		}
		// The host has complained while the request waited for the limit.
		_, err = t.Limiter.Refund(ctx, name, 1)
		t.end(name, h, time.Time{}, nil)
		if err != nil {
			return nil, err
		}
	}
}

// enter waits until the host takes a request, and counts it as in flight.
func (t *Transport) enter(ctx context.Context, name string) (*host, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	h := t.host(name)
	now := time.Now()
	if len(h.queue) == 0 && h.takes(now) {
		h.inFlight++
		t.mu.Unlock()
		return h, nil
	}
	if end, ends := ctx.Deadline(); ends && end.Before(h.until) {
		t.forget(name, h, now)
		t.mu.Unlock()
		return nil, weir.ErrWouldWait
	}
	ready := make(chan struct{}, 1)
	h.queue = append(h.queue, ready)
	t.grant(h, now)
	t.mu.Unlock()
	select {
	case <-ready:
		return h, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(h.queue, ready); i >= 0 {
		h.queue = slices.Delete(h.queue, i, i+1)
	} else {
		h.inFlight-- // it was granted meanwhile
	}
	t.grant(h, time.Now())
	t.forget(name, h, time.Now())
	return nil, ctx.Err()
}

// end ends a request that was sent at a time, or was not sent if that is zero.
func (t *Transport) end(name string, h *host, sent time.Time, answer *http.Response) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	h.inFlight--
	if answer != nil {
		h.learn(sent, now, answer)
	}
	t.grant(h, now)
	t.forget(name, h, now)
}

// learn adapts to the answer to a request.
func (h *host) learn(sent, now time.Time, answer *http.Response) {
	news := !sent.Before(h.complained) // unlike the answers to other requests of the same burst
	if answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusServiceUnavailable {
		if news && h.most > 0 {
			h.most, h.inRow = h.most+1, 0
		}
		return
	}
	if news {
		h.complained, h.most = now, max(1, (h.inFlight+1)/2)
		h.inRow = min(h.inRow+1, 10)
	}
	pause := min(headers.ParseRetryAfter(answer.Header, now), longestPause)
	if pause == 0 {
		pause = min(time.Second<<max(h.inRow-1, 0), longestBackoff)
	}
	if until := now.Add(pause); until.After(h.until) {
		h.until = until
	}
}

// takes reports whether one more request may be sent to h.
func (h *host) takes(now time.Time) bool {
	return !now.Before(h.until) && (h.most == 0 || h.inFlight < h.most)
}

// grant lets requests that wait for h go, in their order, as many as h takes. The caller has locked mu.
func (t *Transport) grant(h *host, now time.Time) {
	for len(h.queue) > 0 && h.takes(now) {
		h.queue[0] <- struct{}{}
		h.queue = slices.Delete(h.queue, 0, 1)
		h.inFlight++
	}
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	if len(h.queue) > 0 && now.Before(h.until) {
		h.timer = time.AfterFunc(h.until.Sub(now), func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.grant(h, time.Now())
		})
	}
}

// host returns what t knows of a host. The caller has locked mu.
func (t *Transport) host(name string) *host {
	if h := t.hosts[name]; h != nil {
		return h
	}
	now := time.Now()
	if len(t.hosts) >= max(t.sweep, 64) {
		for name, h := range t.hosts {
			t.forget(name, h, now)
		}
		t.sweep = 2 * len(t.hosts)
	}
	h := &host{}
	if t.hosts == nil {
		t.hosts = map[string]*host{}
	}
	t.hosts[name] = h
	return h
}

// forget drops h if there is nothing to know of it. The caller has locked mu.
func (t *Transport) forget(name string, h *host, now time.Time) {
	idle := h.inFlight == 0 && len(h.queue) == 0
	if idle && (h.most == 0 || now.Sub(h.until) >= remembered || len(t.hosts) > maxHosts) && t.hosts[name] == h {
		delete(t.hosts, name)
	}
}
