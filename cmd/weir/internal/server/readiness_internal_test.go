package server

import (
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/stores"
)

// All that reports health agrees that a service is not ready while it loads the counters of its directory.
func TestNotReadyWhileLoading(t *testing.T) {
	t.Parallel()
	local, err := stores.OpenLocal(stores.LocalOptions{Dir: t.TempDir(), Event: func(slog.Level, string) {}})
	if err != nil {
		t.Fatal(err)
	}
	b := &backends{local: local}
	defer func() { _ = b.close() }()
	r := readiness{store: b, rules: &namespaces{}}
	w := httptest.NewRecorder()
	if r.readyz(w, nil); r.is() || w.Code != 503 {
		t.Errorf("while loading: got %v, and /readyz %d, want not ready", r.is(), w.Code)
	}
	if b.known.Store(true); !r.is() {
		t.Error("after it: got not ready")
	}
}
