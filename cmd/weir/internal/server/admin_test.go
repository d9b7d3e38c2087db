package server_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/server"
)

// While the admin address answers as many calls as it may, it refuses further ones, and still
// answers probes.
func TestProbesWhileAdminIsBusy(t *testing.T) {
	t.Parallel()
	begun, end := make(chan bool), make(chan bool)
	admin := server.NewAdmin(func(http.ResponseWriter, *http.Request) { begun <- true; <-end })
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
