package ratelimit

import (
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/weirhq/weir/headers"
)

// Transport is an [http.RoundTripper] that waits when a server answers that a limit
// is exceeded, as long as the server asks for, and sends the request again.
//
// It sends a request again only if the server has not acted on it:
//
//   - after 429 Too Many Requests, whatever the method;
//   - after 503 Service Unavailable with Retry-After, if the method is GET, HEAD,
//     OPTIONS or TRACE, because behind a proxy the server may have acted;
//   - never after an error, such as a connection that broke.
//
// The answer is returned as it is if the server states no wait, if the wait ends
// after the request's deadline or is longer than what is left of MaxWait, if the
// request was sent Attempts times, or if its body cannot be sent again
// ([http.Request.GetBody] is nil). If the request's context ends during a wait, the
// error is that of the context.
//
// The zero value is ready for use. A Transport is safe for concurrent use. Its
// fields must not be changed after the first request.
type Transport struct {
	// Base sends the requests. Nil means [http.DefaultTransport].
	Base http.RoundTripper

	// MaxWait is the longest time that all waits of one request may take together.
	// 0 means one minute.
	MaxWait time.Duration

	// Attempts is how often a request is sent at most. 0 means 5.
	Attempts int

	// Jitter makes each wait longer by a random part, up to this fraction, so that
	// clients do not all come back at the same instant. 0 means a tenth. Negative
	// means no jitter.
	Jitter float64

	// Waiting is called before each wait, with the limits that the server states.
	// Nil: it is not called.
	Waiting func(r *http.Request, wait time.Duration, l *headers.Limits)
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base, left, attempts := t.Base, t.MaxWait, t.Attempts
	if base == nil {
		base = http.DefaultTransport
	}
	if left == 0 {
		left = time.Minute
	}
	if attempts == 0 {
		attempts = 5
	}
	for sent := 1; ; sent++ {
		answer, err := base.RoundTrip(r)
		if err != nil || sent >= attempts || !retryable(r, answer) {
			return answer, err
		}
		limits := Parse(answer.Header, time.Now())
		wait := t.wait(&limits)
		if wait <= 0 || wait > left || endsBefore(r, wait) {
			return answer, nil
		}
		next, ok := again(r)
		if !ok {
			return answer, nil
		}
		left -= wait
		if t.Waiting != nil {
			t.Waiting(r, wait, &limits)
		}
		timer := time.NewTimer(wait)
		drain(answer, wait)
		select {
		case <-timer.C:
		case <-r.Context().Done():
			timer.Stop()
			if next.Body != nil {
				_ = next.Body.Close() // nothing was read from it
			}
			return nil, r.Context().Err()
		}
		r = next
	}
}

// wait returns how long to wait before the next attempt. 0: the server states no
// wait.
func (t *Transport) wait(l *headers.Limits) time.Duration {
	wait := l.Wait()
	part := t.Jitter
	if part == 0 {
		part = 0.1
	}
	if wait <= 0 || part < 0 {
		return wait
	}
	return wait + time.Duration(float64(wait)*part*rand.Float64()) // nothing secret depends on it
}

// retryable reports whether answer says that the server has not acted on r.
func retryable(r *http.Request, answer *http.Response) bool {
	switch answer.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusServiceUnavailable:
		if answer.Header.Get("Retry-After") == "" {
			return false
		}
		switch r.Method {
		case http.MethodGet, "", http.MethodHead, http.MethodOptions, http.MethodTrace:
			return true
		}
	}
	return false
}

// endsBefore reports whether the context of r ends before the wait does.
func endsBefore(r *http.Request, wait time.Duration) bool {
	end, ends := r.Context().Deadline()
	return ends && time.Until(end) < wait
}

// again returns r for another attempt, and reports whether there can be one.
func again(r *http.Request) (*http.Request, bool) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, true
	}
	if r.GetBody == nil {
		return nil, false
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, false
	}
	next := r.Clone(r.Context())
	next.Body = body
	return next, true
}

// drain reads the rest of a short body, so that the connection can be used again. It closes the body of a server
// that has not sent the rest after a time.
func drain(answer *http.Response, patience time.Duration) {
	late := time.AfterFunc(patience, func() { _ = answer.Body.Close() })
	defer late.Stop()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	_ = answer.Body.Close()
}
