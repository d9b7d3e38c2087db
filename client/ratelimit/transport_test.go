package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/client/ratelimit"
	"github.com/weirhq/weir/headers"
)

// server answers requests from a list, and writes down when it got them and what.
type server struct {
	begun   time.Time
	answers []answer
	got     []string
}

type answer struct {
	status int
	header string // NAME: VALUE
	err    error
}

// RoundTrip implements [http.RoundTripper].
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = " " + string(b)
		if err := r.Body.Close(); err != nil {
			return nil, err
		}
	}
	s.got = append(s.got, fmt.Sprintf("%v %s%s", time.Since(s.begun), r.Method, body))
	next := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	if next.err != nil {
		return nil, next.err
	}
	h := http.Header{}
	if name, value, ok := strings.Cut(next.header, ": "); ok {
		h.Set(name, value)
	}
	return &http.Response{StatusCode: next.status, Header: h, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

func TestTransport(t *testing.T) {
	t.Parallel()
	broken := errors.New("the connection broke")
	for name, tc := range map[string]struct {
		method, body string
		opaque       bool // the body cannot be sent again
		deadline     time.Duration
		answers      []answer
		transport    ratelimit.Transport
		want         string
		status       int
	}{
		"admitted": {
			answers: []answer{{status: 200}},
			want:    "0s GET", status: 200,
		},
		"denied, then admitted": {
			method: "POST", body: "x",
			answers: []answer{{status: 429, header: "Retry-After: 30"}, {status: 201}},
			want:    "0s POST x, 30s POST x", status: 201,
		},
		"the wait of the tightest policy": {
			answers: []answer{{status: 429, header: `RateLimit: "day";r=0;t=20, "minute";r=0;t=5, "other";r=1`}, {status: 200}},
			want:    "0s GET, 20s GET", status: 200,
		},
		"no wait is stated": {
			answers: []answer{{status: 429}},
			want:    "0s GET", status: 429,
		},
		"an error is never sent again": {
			answers: []answer{{err: broken}},
			want:    "0s GET",
		},
		"a 503 with a wait, safe method": {
			answers: []answer{{status: 503, header: "Retry-After: 2"}, {status: 200}},
			want:    "0s GET, 2s GET", status: 200,
		},
		"a 503 with a wait, which may have counted": {
			method: "POST", body: "x",
			answers: []answer{{status: 503, header: "Retry-After: 2"}},
			want:    "0s POST x", status: 503,
		},
		"a 503 without a wait": {
			answers: []answer{{status: 503}},
			want:    "0s GET", status: 503,
		},
		"the body cannot be sent again": {
			method: "POST", body: "x", opaque: true,
			answers: []answer{{status: 429, header: "Retry-After: 30"}},
			want:    "0s POST x", status: 429,
		},
		"the wait is too long": {
			answers: []answer{{status: 429, header: "Retry-After: 61"}},
			want:    "0s GET", status: 429,
		},
		"all waits together are too long": {
			answers: []answer{{status: 429, header: "Retry-After: 40"}},
			want:    "0s GET, 40s GET", status: 429,
		},
		"the deadline comes first": {
			deadline: 10 * time.Second,
			answers:  []answer{{status: 429, header: "Retry-After: 30"}},
			want:     "0s GET", status: 429,
		},
		"at most so many attempts": {
			transport: ratelimit.Transport{Attempts: 3, MaxWait: time.Hour},
			answers:   []answer{{status: 429, header: "Retry-After: 1"}},
			want:      "0s GET, 1s GET, 2s GET", status: 429,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{begun: time.Now(), answers: tc.answers}
				transport := tc.transport
				transport.Base, transport.Jitter = s, -1
				ctx := t.Context()
				if tc.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.deadline)
					defer cancel()
				}
				var body io.Reader
				if tc.body != "" {
					body = strings.NewReader(tc.body)
				}
				if tc.opaque {
					body = io.MultiReader(body)
				}
				r, err := http.NewRequestWithContext(ctx, tc.method, "http://example.org/", body)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := transport.RoundTrip(r)
				if err == nil {
					defer answer.Body.Close()
				}
				switch {
				case tc.status == 0 && !errors.Is(err, broken):
					t.Errorf("got %v, want the error of the base", err)
				case tc.status != 0 && (err != nil || answer.StatusCode != tc.status):
					t.Errorf("got %v %v, want %d", answer, err, tc.status)
				}
				if got := strings.Join(s.got, ", "); got != tc.want {
					t.Errorf("got requests %s, want %s", got, tc.want)
				}
			})
		})
	}
}

// A wait ends with the context of the request.
func TestTransportEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		transport := ratelimit.Transport{
			Base:    &server{begun: time.Now(), answers: []answer{{status: 429, header: "Retry-After: 30"}}},
			Waiting: func(*http.Request, time.Duration, *headers.Limits) { time.AfterFunc(time.Second, cancel) },
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://example.org/", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		answer, err := transport.RoundTrip(r)
		if err == nil {
			answer.Body.Close()
		}
		if took := time.Since(begun); !errors.Is(err, context.Canceled) || took != time.Second {
			t.Errorf("got %v after %v, want the end of the context after a second", err, took)
		}
	})
}

// Jitter makes waits longer, by at most its part, and never shorter.
func TestJitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		different := map[time.Duration]bool{}
		for range 100 {
			transport := ratelimit.Transport{
				Base:    &server{answers: []answer{{status: 429, header: "Retry-After: 10"}, {status: 200}}},
				Waiting: func(_ *http.Request, wait time.Duration, _ *headers.Limits) { different[wait] = true },
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://example.org/", nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()

			h := http.Header{}
			headers.Format{Jitter: 0.5}.Set(h, &headers.Limits{
				RetryAfter: 100 * time.Second,
				Policies:   []headers.Policy{{Name: "a", Quota: 1, RetryAfter: 100 * time.Second}},
			})
			l := ratelimit.Parse(h, time.Now())
			if l.RetryAfter < 100*time.Second || l.RetryAfter > 150*time.Second || l.RetryAfter != l.Policies[0].RetryAfter {
				t.Fatalf("got %v, want the same wait twice, from 100 to 150 seconds", h)
			}
		}
		for wait := range different {
			if wait < 10*time.Second || wait > 11*time.Second {
				t.Errorf("got a wait of %v, want 10 to 11 seconds", wait)
			}
		}
		if len(different) < 50 {
			t.Errorf("got %d different waits of 100", len(different))
		}
	})
}

// endless is a body of which nothing more arrives until it is closed.
type endless struct{ closed chan struct{} }

func (e endless) Read([]byte) (int, error) {
	<-e.closed
	return 0, errors.New("the body is closed")
}

func (e endless) Close() error {
	select {
	case <-e.closed:
	default:
		close(e.closed)
	}
	return nil
}

// A server that asks for a wait and never ends its answer does not make the wait longer.
func TestEndlessDenial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{begun: time.Now(), answers: []answer{{status: 429, header: "Retry-After: 30"}, {status: 200}}}
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			answer, err := s.RoundTrip(r)
			if err == nil && answer.StatusCode == http.StatusTooManyRequests {
				answer.Body = endless{make(chan struct{})}
			}
			return answer, err
		})
		answer, err := (&http.Client{Transport: &ratelimit.Transport{Base: base, Jitter: -1}}).Get("http://a")
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil {
			t.Error(err)
		}
		if got := strings.Join(s.got, ", "); got != "0s GET, 30s GET" {
			t.Errorf("got %s, want the second request after 30s", got)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
