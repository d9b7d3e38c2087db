//go:build ignore

// A server that allows each address three requests at once, and one a minute after that:
// go run examples/compat/addresses.go
package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/weirhq/weir/compat/rate"
)

// A visitor is an address, its limiter, and when it was last seen.
type visitor struct {
	limiter *rate.Limiter
	seen    time.Time
}

type visitors struct {
	limit rate.Limit
	burst int
	mu    sync.Mutex
	of    map[string]*visitor
}

func (v *visitors) limiter(address string) *rate.Limiter {
	v.mu.Lock()
	defer v.mu.Unlock()
	known, ok := v.of[address]
	if !ok {
		known = &visitor{limiter: rate.NewLimiter(v.limit, v.burst)}
		v.of[address] = known
	}
	known.seen = time.Now()
	return known.limiter
}

// forget drops those that were last seen before t. An address that is forgotten too early
// gets a new burst, so the time must be enough to fill a bucket.
func (v *visitors) forget(t time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for address, known := range v.of {
		if known.seen.Before(t) {
			delete(v.of, address)
		}
	}
}

// handler refuses requests over the limit with the time until the next one fits.
func (v *visitors) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			http.Error(w, "no address", http.StatusInternalServerError)
			return
		}
		held := v.limiter(address).Reserve()
		if wait := held.Delay(); wait > 0 {
			held.Cancel()
			w.Header().Set("Retry-After", fmt.Sprint(int(wait.Seconds()+1)))
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func main() {
	v := &visitors{limit: rate.Every(time.Minute), burst: 3, of: map[string]*visitor{}}
	server := v.handler(http.NotFoundHandler())
	for _, address := range []string{"192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.1"} {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.RemoteAddr = address + ":1234"
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, request)
		fmt.Println(address, answer.Code, answer.Header().Get("Retry-After"))
	}
	v.forget(time.Now().Add(-3 * time.Minute)) // which a program does every few minutes
	fmt.Println(len(v.of), "addresses")
}

// It prints:
//
// 192.0.2.1 404
// 192.0.2.1 404
// 192.0.2.1 404
// 192.0.2.1 429 60
// 192.0.2.2 404
// 192.0.2.1 429 60
// 2 addresses
