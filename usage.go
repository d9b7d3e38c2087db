package weir

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// ErrUnknownRule is the error of a question about a rule that is not in force.
var ErrUnknownRule = errors.New("weir: no such rule")

// KeyUsage is what a rule has counted for one key.
type KeyUsage struct {
	Usage

	// History is the hits over time, oldest first: by cell for counters, the
	// current period for fixed and calendar windows, empty for the others.
	History []window.Cell

	// Degraded reports whether the store could not answer, so that the numbers
	// are those of this process alone.
	Degraded bool
}

// Usage returns what the rule called name has counted for the key that
// attributes give. They must include the rule's `per`. It counts nothing.
func (e *Engine) Usage(ctx context.Context, name string, attributes []Attribute) (KeyUsage, error) {
	k, err := e.locate(name, attributes)
	if err != nil {
		return KeyUsage{}, err
	}
	r := k.rule
	reading, degraded, err := e.driver.Read(ctx, &k.op, r.OnOutage)
	if err != nil {
		return KeyUsage{}, fmt.Errorf("weir: usage: %w", err)
	}
	return KeyUsage{
		Usage:    Usage{Rule: name, Kind: r.Kind(), Key: k.text, Shadow: r.Mode == rule.Shadow, Result: reading.Result},
		History:  reading.History,
		Degraded: degraded,
	}, nil
}

// Forget drops what the rule called name has counted for the key that
// attributes give, in the store and in this process's memory. When the store is
// out of reach the error says so, and the memory has dropped the key all the
// same.
func (e *Engine) Forget(ctx context.Context, name string, attributes []Attribute) error {
	k, err := e.locate(name, attributes)
	if err != nil {
		return err
	}
	if err := e.driver.Forget(ctx, &k.op); err != nil {
		return fmt.Errorf("weir: forget: %w", err)
	}
	return nil
}

// located is a key of a rule.
type located struct {
	rule *rule.Rule
	op   store.Op
	text string // the key for people
}

func (e *Engine) locate(name string, attributes []Attribute) (located, error) {
	rules, err := e.ready()
	if err != nil {
		return located{}, err
	}
	values := vector(nil, rules.Set, attributes)
	op, i, ok, err := rules.Locate(name, values)
	switch {
	case err != nil:
		return located{}, err
	case !ok:
		return located{}, fmt.Errorf("%w that counts: %q", ErrUnknownRule, name)
	}
	return located{rules.Rule(i), op, rules.Key(i, values)}, nil
}
