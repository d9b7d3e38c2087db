package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/config"
)

// If the last counters cannot be written, the service ends with an error.
func TestLastCountersAreLost(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := start(t, func(c *config.Config) { c.Data, c.SyncInterval = dir, time.Hour })
	if err := os.Rename(dir, dir+".gone"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if a := call(t, "POST", s.api+"/v1/take", `{"attributes": {"user": "42"}}`); a.status != 200 {
		t.Fatalf("got %d %s", a.status, a.text)
	}
	if err := s.stop(); err == nil || !strings.Contains(err.Error(), "the last counters could not be written") {
		t.Errorf("got %v, want the error", err)
	}
}
