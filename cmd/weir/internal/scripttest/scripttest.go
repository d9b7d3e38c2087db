// Package scripttest has an engine for tests with scripts, and the time at which they begin. Only tests import it.
package scripttest

import (
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// Start is when scripts with a clock begin.
var Start = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

// NewEngine returns an engine for a rules file, and its store in memory, which
// takes the time from now.
func NewEngine(
	t testing.TB, rules string, now func() window.Instant, options ...weir.Option,
) (*weir.Engine, *memstore.Store) {
	t.Helper()
	file, err := rulefile.Parse("rules.yaml", []byte(rules), nil)
	if err != nil {
		t.Fatal(err)
	}
	counts := memstore.New(memstore.WithClock(now))
	t.Cleanup(func() { counts.Close() })
	engine, err := weir.NewEngine(file.Set, append([]weir.Option{weir.WithStore(counts)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return engine, counts
}
