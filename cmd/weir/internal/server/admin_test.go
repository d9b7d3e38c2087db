package server_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/cmd/weir/internal/server"
)

// While the admin address answers as many calls as it may, it refuses further ones, and still
// answers probes.
func TestProbesWhileAdminIsBusy(t *testing.T) {
	t.Parallel()
	begun, end := make(chan bool), make(chan bool)
	admin := server.NewAdmin(nil, func(http.ResponseWriter, *http.Request) { begun <- true; <-end })
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		admin.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	var calls sync.WaitGroup
	for range 16 {
		calls.Go(func() { get("/slow") })
		<-begun
	}
	if w := get("/metrics"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("one call more: got %d %v, want 503 and a wait", w.Code, w.Header())
	}
	if w := get("/healthz"); w.Code != http.StatusOK {
		t.Errorf("a probe: got %d, want 200", w.Code)
	}
	close(end)
	calls.Wait()
	if w := get("/metrics"); w.Code != http.StatusOK {
		t.Errorf("afterwards: got %d, want 200", w.Code)
	}
}

// Callers of the further address for metrics, who do not read their answers, keep nobody at another client address from
// it, and no operator from the admin address.
func TestAdminWhileMetricsAreNotRead(t *testing.T) {
	t.Parallel()
	admin := server.NewAdmin(nil, nil)
	metrics := server.MetricsOnly(admin)
	from := func(address string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.RemoteAddr = address
		return r
	}
	begun, end := make(chan bool), make(chan bool)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() { metrics.ServeHTTP(&unread{httptest.NewRecorder(), begun, end}, from("192.0.2.1:1")) })
		<-begun
	}
	for _, c := range []struct {
		at      http.Handler
		address string
		want    int
	}{
		{metrics, "192.0.2.1:2", http.StatusServiceUnavailable},
		{metrics, "192.0.2.2:1", http.StatusOK},
		{admin, "192.0.2.1:2", http.StatusOK},
	} {
		w := httptest.NewRecorder()
		if c.at.ServeHTTP(w, from(c.address)); w.Code != c.want {
			t.Errorf("one call more from %s: got %d, want %d", c.address, w.Code, c.want)
		}
	}
	close(end)
	calls.Wait()
}

// unread is an answer whose client does not read it before end.
type unread struct {
	*httptest.ResponseRecorder
	begun, end chan bool
}

func (u *unread) Write(b []byte) (int, error) {
	select {
	case <-u.end:
	case u.begun <- true:
		<-u.end
	}
	return u.ResponseRecorder.Write(b)
}

// Calls that holders of tokens of one namespace can make, too, keep no operator away, and a client that does not read
// its answer makes room for others. Profiles have time.
func TestAdminWhileOthersAreBusy(t *testing.T) {
	t.Parallel()
	begun, end := make(chan bool), make(chan bool)
	admin := server.NewAdmin(nil, func(http.ResponseWriter, *http.Request) { begun <- true; <-end })
	get := func(path string) *deadlined {
		w := &deadlined{ResponseRecorder: httptest.NewRecorder(), until: time.Unix(1, 0)} // as an earlier call has left it
		admin.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	var calls sync.WaitGroup
	for range 16 {
		calls.Go(func() {
			if w := get("/ns/shop/v1/audit"); w.until.Before(time.Now()) || w.until.After(time.Now().Add(time.Minute)) {
				t.Errorf("a call of the API: got %v as the deadline of its answer", w.until)
			}
		})
		<-begun
	}
	if w := get("/v1/overrides"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("one call of the API more: got %d, want 503", w.Code)
	}
	if w := get("/metrics"); w.Code != http.StatusOK || w.until.Before(time.Now()) {
		t.Errorf("a call of an operator: got %d until %v, want 200 and some time", w.Code, w.until)
	}
	close(end)
	calls.Wait()
	if w := get("/debug/pprof/cmdline"); !w.until.IsZero() {
		t.Errorf("a profile: got %v as the deadline of its answer, want none", w.until)
	}
}

// Neither strangers, whose calls are refused when their bodies have arrived or end, nor holders of one token that is bound to
// a namespace, or has not all rights, keep an operator away.
func TestAdminWhileOthersCall(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	write(t, tokens, access.Line("shop", "tenant", access.Read, "shop")+"\n"+access.Line("web", "web", access.Decide, "")+"\n")
	keys := scripttest.Keys(t, tokens, access.Own{Name: "ops", Token: "right", Scopes: access.All})
	for _, path := range []string{"/v1/check", "/slow"} { // which the API answers, and which the admin address does
		for _, token := range []string{"", "wrong", "tenant", "web"} {
			begun, end := make(chan bool, 100), make(chan bool)
			admin := server.NewAdmin(keys, func(_ http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer right" {
					begun <- true
					<-end
				}
			})
			call := func(token string) int {
				w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
				if token != "" {
					r.Header.Set("Authorization", "Bearer "+token)
				}
				admin.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					begun <- true
				}
				return w.Code
			}
			var others sync.WaitGroup
			for range 40 {
				others.Go(func() { call(token) })
				<-begun
			}
			if code := call("right"); code != http.StatusOK {
				t.Errorf("%s: an operator, while 40 call with %q: got %d, want 200", path, token, code)
			}
			close(end)
			others.Wait()
		}
	}
}

// deadlined records the deadline of an answer.
type deadlined struct {
	*httptest.ResponseRecorder
	until time.Time
}

func (d *deadlined) SetWriteDeadline(t time.Time) error {
	d.until = t
	return nil
}
