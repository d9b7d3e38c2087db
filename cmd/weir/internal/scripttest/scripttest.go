// Package scripttest has engines and tokens for tests, and the time at which scripts begin. Only tests import it.
package scripttest

import (
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/rule"
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
	counts := memstore.New(memstore.WithClock(now))
	t.Cleanup(func() { counts.Close() })
	return Engine(t, Rules(t, rules), append([]weir.Option{weir.WithStore(counts)}, options...)...), counts
}

// Engine returns an engine that is closed when the test ends.
func Engine(t testing.TB, rules *rule.Set, options ...weir.Option) *weir.Engine {
	t.Helper()
	engine, err := weir.NewEngine(rules, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	return engine
}

// Keys returns the tokens in a file and own ones. They are closed when the test ends.
func Keys(t testing.TB, file string, own ...access.Own) *access.Keys {
	t.Helper()
	keys, err := access.OpenKeys(file, own...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keys.Close() })
	return keys
}

// Rules returns the rules of a file.
func Rules(t testing.TB, file string) *rule.Set {
	t.Helper()
	f, err := rulefile.Parse("rules.yaml", []byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f.Set
}
