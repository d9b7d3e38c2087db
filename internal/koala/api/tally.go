package api

import (
	"context"
	"errors"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/window"
)

// tally counts, for today in koala's time zone, how often each rule let a
// request pass and how often it did not. It is this process's alone, as
// koala's is.
type tally struct{ allowed, denied *weir.Counter }

func newTally() (*tally, error) {
	zone, err := time.LoadLocation("Asia/Shanghai")
	if err != nil { // no time zone data on this machine; there has been no summer time since 1991
		zone = time.FixedZone("Asia/Shanghai", 8*60*60)
	}
	day := window.Calendar(window.Day, zone)
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

// add counts one answer of the rule called name. A count that finds no room is
// lost: statistics deny nobody.
func (t *tally) add(name string, allowed bool) {
	c := t.denied
	if allowed {
		c = t.allowed
	}
	_, _ = c.Add(context.Background(), name, 1)
}

// today is how often the rule called name has allowed and denied.
func (t *tally) today(name string) (allowed, denied int64, err error) {
	allowed, err = t.allowed.Count(context.Background(), name, 24*time.Hour)
	if err == nil {
		denied, err = t.denied.Count(context.Background(), name, 24*time.Hour)
	}
	return allowed, denied, err
}

// count adds what the rules of a decision answered, up to the one that decided;
// all of them where a request wants to know all.
func (a *API) count(t *table, d *weir.Decision, all bool) {
	t.visit(d, func(i int, out bool) bool {
		name := t.set.Rule(i).Name
		a.tally.add(name, !out || t.set.Allows(i))
		return all || name != d.Rule
	})
}
