package weir

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// KeyUsage is what a rule has counted for one key.
type KeyUsage struct {
	Usage

	// History is the hits over time, oldest first: by cell for counters, the
	// current period for fixed and calendar windows, nothing for the others.
	History []window.Cell
}

// Usage is what the rule called name has counted for the key that attributes
// give, which have to hold the rule's `per`. It counts nothing.
func (e *Engine) Usage(ctx context.Context, name string, attributes []Attribute) (KeyUsage, error) {
	rules := e.rules.Load()
	op, values, err := rules.locate(name, attributes)
	if err != nil {
		return KeyUsage{}, err
	}
	state, now, err := e.store.Peek(ctx, &op)
	if err != nil {
		return KeyUsage{}, fmt.Errorf("weir: usage: %w", err)
	}
	reading := op.Limit.Read(state, now)
	i, _ := rules.Find(name)
	r := rules.Rule(i)
	return KeyUsage{
		Usage: Usage{
			Rule: name, Kind: r.Kind(), Key: rules.Key(i, values), Shadow: r.Mode == rule.Shadow,
			Result: reading.Result,
		},
		History: reading.History,
	}, nil
}

// Forget drops what the rule called name has counted for the key that
// attributes give, in the store and in this process's memory.
func (e *Engine) Forget(ctx context.Context, name string, attributes []Attribute) error {
	op, _, err := e.rules.Load().locate(name, attributes)
	if err != nil {
		return err
	}
	err = e.store.Forget(ctx, &op)
	if e.local != nil {
		err = errors.Join(err, e.local.Forget(ctx, &op))
	}
	if err != nil {
		return fmt.Errorf("weir: forget: %w", err)
	}
	return nil
}

// locate makes the op that finds a key of the rule called name. It asks for
// what the key needs, not for the rule's other conditions.
func (s *ruleset) locate(name string, attributes []Attribute) (op store.Op, values []string, err error) {
	i, ok := s.Find(name)
	if !ok || s.Rule(i).Kind() == rule.KindVerdict {
		return op, nil, fmt.Errorf("%w that counts: %q", ErrUnknownRule, name)
	}
	r := s.Rule(i)
	values = vector(nil, s.Set, attributes)
	for _, attribute := range r.Per {
		if at, _ := s.Attribute(attribute); values[at] == "" {
			return op, nil, fault.Newf("attributes."+attribute, "missing: rule %s counts per %s", name, attribute)
		}
	}
	op = store.Op{Space: s.spaces[i], Limit: s.LimitOf(i, values), Key: s.AppendKey(nil, i, values)}
	op.Together = []byte(s.Together(i, values))
	if op.Limit == nil {
		return op, nil, fault.Newf("attributes."+r.Quota.By, "missing: the limit of rule %s depends on it", name)
	}
	return op, values, nil
}
