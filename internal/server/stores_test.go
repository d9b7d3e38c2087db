package server_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/server"
	"github.com/weirhq/weir/store/redisstore"
)

// Each change is logged once. A node that a cluster has replaced does not stay
// out of reach.
func TestReportOfNodes(t *testing.T) {
	t.Parallel()
	report := server.NewReport()
	up, down := redisstore.Node{Addr: "a:1"}, redisstore.Node{Addr: "a:1", CutOff: true}
	other := redisstore.Node{Addr: "b:1"}
	for i, step := range []struct {
		nodes []redisstore.Node
		want  string
	}{
		{[]redisstore.Node{up, other}, ""},
		{[]redisstore.Node{down, other}, "store out of reach"},
		{[]redisstore.Node{down, other}, ""},
		{[]redisstore.Node{up, other}, "store answers again"},
		{[]redisstore.Node{down, other}, "store out of reach"},
		{[]redisstore.Node{other}, "node out of reach has left the store"},
		{[]redisstore.Node{other}, ""},
		{[]redisstore.Node{down, other}, "store out of reach"},
	} {
		var said strings.Builder
		report(slog.New(slog.NewTextHandler(&said, nil)), step.nodes)
		got := said.String()
		if !strings.Contains(got, step.want) || (step.want == "") != (got == "") {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
	}
}
