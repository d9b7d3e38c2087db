package server_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/server"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/remote"
)

// Each change is one line, with its reason or its length.
func TestLogOfNodes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		change remote.Change
		want   []string
	}{
		{
			remote.Change{Addr: "a:1", Err: &store.OutageError{Reason: "refused", Err: errors.New("connection refused")}},
			[]string{"level=WARN", "store unavailable", "node=a:1", "reason=refused", `error="connection refused"`},
		},
		{
			remote.Change{Addr: "a:1", Lasted: 1500 * time.Millisecond, Missed: 7},
			[]string{"level=INFO", "store answers again", "after=1.5s", "outages=7"},
		},
		{
			remote.Change{Addr: "a:1", Gone: true, Lasted: time.Minute},
			[]string{"level=INFO", "unavailable node has left the store", "after=1m0s"},
		},
	} {
		var said strings.Builder
		server.LogChange(slog.New(slog.NewTextHandler(&said, nil)))(test.change)
		for _, want := range test.want {
			if !strings.Contains(said.String(), want) {
				t.Errorf("got %q, want %q in it", said.String(), want)
			}
		}
		if got := strings.Count(said.String(), "\n"); got != 1 {
			t.Errorf("got %d lines, want 1", got)
		}
	}
}
