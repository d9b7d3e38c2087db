package api

import (
	"context"
	"errors"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/koala"
	"github.com/weirhq/weir/window"
)

// tally counts how often each rule has allowed and denied a request today, in
// koala's time zone. Like koala's statistics it belongs to one process.
type tally struct{ allowed, denied *weir.Counter }

func newTally() (*tally, error) {
	day := window.Calendar(window.Day, koala.Zone())
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

// add counts one answer of a rule. It ignores a count for which there is no
// room: statistics never deny.
func (t *tally) add(name string, allowed bool) {
	c := t.denied
	if allowed {
		c = t.allowed
	}
	_, _ = c.Add(context.Background(), name, 1)
}

// today returns how often a rule has allowed and denied today.
func (t *tally) today(name string) (allowed, denied int64, err error) {
	allowed, err = t.allowed.Count(context.Background(), name, 24*time.Hour)
	if err == nil {
		denied, err = t.denied.Count(context.Background(), name, 24*time.Hour)
	}
	return allowed, denied, err
}

// count adds the answers of the rules in a decision: up to the rule that
// decided, or of all rules if all is set.
func (a *API) count(t *table, d *weir.Decision, all bool) {
	t.visit(d, func(i int, out bool) bool {
		name := t.set.Rule(i).Name
		a.tally.add(name, !out || t.set.Allows(i))
		return all || name != d.Rule
	})
}
