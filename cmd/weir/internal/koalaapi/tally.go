package koalaapi

import (
	"context"
	"errors"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/window"
)

// tally counts how often each rule has allowed and denied a request today, in
// koala's time zone. Like koala's statistics it belongs to one process.
type tally struct{ allowed, denied *weir.Counter }

func newTally() (*tally, error) {
	day := window.Calendar(window.Day, koalafile.Zone())
	allowed, err := weir.NewCounter(day)
	if err != nil {
		return nil, err
	}
	denied, err := weir.NewCounter(day)
	if err != nil {
		return nil, err
	}
	return &tally{allowed, denied}, nil
}

func (t *tally) close() error { return errors.Join(t.allowed.Close(), t.denied.Close()) }

// tallyKey returns the key of a rule in the statistics, which namespaces share.
func tallyKey(namespace, name string) string { return string(ruleset.AppendKey(nil, namespace, name)) }

// add counts one answer of the rule with a key. It ignores a full table, because statistics never
// deny.
func (t *tally) add(key string, allowed bool) {
	c := t.denied
	if allowed {
		c = t.allowed
	}
	_, _ = c.Add(context.Background(), key, 1)
}

// today returns how often the rule with a key has allowed and denied today.
func (t *tally) today(key string) (allowed, denied int64, err error) {
	allowed, err = t.allowed.Count(context.Background(), key, 24*time.Hour)
	if err == nil {
		denied, err = t.denied.Count(context.Background(), key, 24*time.Hour)
	}
	return allowed, denied, err
}

// count adds the answers of the rules in a decision: up to the rule that
// decided, or of all rules if all is set.
func (a *API) count(t *table, d *weir.Decision, all bool) {
	t.visit(d, func(i int, out bool) bool {
		a.tally.add(t.lines[i].tally, !out || t.set.Compiled().Allows(i))
		return all || t.set.Rule(i).Name != d.Rule
	})
}
