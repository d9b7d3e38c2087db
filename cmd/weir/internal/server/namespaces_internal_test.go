package server

import (
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/namespace"
)

// Metrics are read while rules are loaded, which can take longer than a scrape may.
func TestReportsDuringReload(t *testing.T) {
	t.Parallel()
	s := &namespaces{set: namespace.NewSet()}
	s.mu.Lock()
	defer s.mu.Unlock()
	read := make(chan struct{})
	go func() { s.reports(); close(read) }()
	select {
	case <-read:
	case <-time.After(10 * time.Second):
		t.Error("got no numbers of the reports during a reload")
	}
}
