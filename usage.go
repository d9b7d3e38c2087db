package weir

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// ErrUnknownRule is wrapped in the error of [Engine.Usage] and [Engine.Forget]
// when no rule in force that counts has the name. A verdict does not count.
var ErrUnknownRule = errors.New("weir: no such rule")

// KeyUsage is what a rule has counted for one key.
type KeyUsage struct {
	Usage

	// History is the hits over time, oldest first: by cell for a cells window,
	// the current period for a fixed or calendar window, by date for a sliding or held
	// window, empty for the others. See [window.Reading].
	History []window.Cell

	// Holds is the number of holds that are alive, and Strikes the number of
	// strikes that are not forgotten ([window.Ban]).
	Holds   int
	Strikes int64

	// Degraded reports whether the store could not answer, so that the numbers
	// are those of the local store ([WithLocal]).
	Degraded bool
}

// Usage returns what the rule called name has counted for one key. It counts
// nothing. The attributes must have a value for each name in the rule's `per`,
// and for the attribute that its quota depends on; others are ignored.
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
		Usage:    Usage{Rule: name, Kind: r.Kind(), Key: k.text, Shadow: r.Mode == rule.Shadow, BannedUntil: reading.BannedUntil, Overridden: k.overridden, Result: reading.Result},
		History:  reading.History,
		Holds:    len(reading.Holds),
		Strikes:  reading.Strikes,
		Degraded: degraded,
	}, nil
}

// Forget drops what the rule called name has counted for one key, in the store
// and in the local store ([WithLocal]). The attributes are those of
// [Engine.Usage]. If the store cannot answer, Forget returns the outage as an
// error, and has dropped the key in the local store.
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

// Set makes n the number of hits that the rule called name counts for one key, to correct it.
// All of them are dated now: in a sliding window they leave together. The result's Before is what
// was counted until then, and Used what is counted now: at most what the window remembers. Hits past the
// quota are no strike. The attributes are those of [Engine.Usage]. It is an error to set the
// count of distinct members or of a held window, of a key with holds that are alive, or of a
// key that is banned. If the store cannot answer, Set returns the outage as an error.
func (e *Engine) Set(ctx context.Context, name string, attributes []Attribute, n int64) (window.Result, error) {
	k, err := e.locate(name, attributes)
	switch {
	case err != nil:
		return window.Result{}, err
	case n < 0 || n > window.MaxHits:
		return window.Result{}, fault.Newf("hits", "%d: want 0 to %d", n, window.MaxHits)
	case k.rule.Measure == window.Distinct:
		return window.Result{}, fault.Newf("rule", "%q counts distinct members: their number cannot be set", name)
	case k.rule.Window.Kind == window.KindHeld:
		return window.Result{}, fault.Newf("rule", "%q counts what is in flight: end the holds instead", name)
	case k.rule.Window.Kind == window.KindBucket && n > k.op.Limit.Capacity():
		return window.Result{}, fault.Newf("hits", "%d: want at most %d, which fill the bucket", n, k.op.Limit.Capacity())
	}
	k.op.N = n
	if err := e.driver.Correct(ctx, store.Set, &k.op); err != nil {
		return window.Result{}, fmt.Errorf("weir: set: %w", err)
	}
	switch r := k.op.Result; {
	case r.Held:
		return r, fault.Newf("attributes", "the key has holds that are alive: settle or cancel them first")
	case r.Banned:
		return r, fault.Newf("attributes", "the key is banned: lift the ban first")
	default:
		return r, nil
	}
}

// Unban ends the ban of one key under the rule called name. Holds and strikes stay. What the key
// had counted before was dropped when the ban began. A key that is not banned is no error, but a rule
// without a ban is. The attributes are those of [Engine.Usage]. If the store cannot answer, Unban returns the outage as an error.
func (e *Engine) Unban(ctx context.Context, name string, attributes []Attribute) error {
	k, err := e.locate(name, attributes)
	switch {
	case err != nil:
		return err
	case k.rule.Ban.For == 0:
		return fault.Newf("rule", "%q has no ban", name)
	}
	if err := e.driver.Correct(ctx, store.Unban, &k.op); err != nil {
		return fmt.Errorf("weir: unban: %w", err)
	}
	return nil
}

// unknownRule returns the error for a name that no rule has that counts.
func unknownRule(rules *plan.Rules, name string) error {
	var names []string
	for i := range rules.Len() {
		if r := rules.Rule(i); r.Kind() != rule.KindVerdict {
			names = append(names, r.Name)
		}
	}
	return fmt.Errorf("%w that counts: %.64q%s", ErrUnknownRule, name, fault.DidYouMean(name, names))
}

// located is a key of a rule.
type located struct {
	rule *rule.Rule
	op   store.Op
	text string // the key for people

	overridden bool
}

func (e *Engine) locate(name string, attributes []Attribute) (located, error) {
	rules, err := e.ready()
	if err != nil {
		return located{}, err
	}
	values := valuesOf(nil, rules.Compiled, attributes)
	op, i, ok, err := rules.Locate(name, values)
	switch {
	case err != nil:
		return located{}, err
	case !ok:
		return located{}, unknownRule(rules, name)
	}
	return located{rules.Rule(i), op, rules.ReadableKey(i, values), rules.Overridden(&op, i, values)}, nil
}
