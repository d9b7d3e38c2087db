package weir

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// call is one request on its way through the engine. Calls are pooled, so
// that their slices are made once.
type call struct {
	rules    *ruleset
	verb     store.Verb
	hits     int64
	feedback string   // gives back what the rules state for it, not hits
	values   []string // by the set's attributes
	matched  []int    // rules
	verdict  int      // index of the first verdict, or -1
	keys     []byte   // every op's key and member, one behind the other
	ops      []store.Op
	of       []int // ops[i] is of rule of[i]
	denied   int   // index of the first rule whose outage policy denied, or -1
	outage   bool  // some op was answered by its outage policy
	local    local // what this process's memory answers in the store's place
	rest     *call // rules behind a verdict, when they wait for those before; else without ops, or nil
}

func (c *call) run(ctx context.Context, e *Engine, verb store.Verb, r *Request, d *Decision) error {
	c.rules, c.verb, c.verdict, c.denied = e.rules.Load(), verb, -1, -1
	d.reset()
	if err := c.read(r); err != nil {
		return err
	}
	c.matched = c.rules.Match(c.values, c.matched[:0])
	if err := c.build(); err != nil {
		return err
	}
	if err := c.ask(ctx, e); err != nil {
		return err
	}
	c.askRest(e)
	c.answer(d)
	return nil
}

// reset drops what points into the request, so that the pool keeps none of it.
func (c *call) reset() {
	if c.rest != nil {
		c.rest.reset()
	}
	clear(c.values)
	clear(c.ops)
	c.local.reset()
	c.rules, c.ops, c.of, c.keys, c.outage, c.feedback = nil, c.ops[:0], c.of[:0], c.keys[:0], false, ""
}

// read puts the request's attributes where the rules look for them.
func (c *call) read(r *Request) error {
	switch {
	case r.Hits == 0:
		c.hits = 1
	case r.Hits == LookOnly:
		c.hits = 0
	case r.Hits < 0:
		return fault.Newf("hits", "%d: want a number from 0", r.Hits)
	default:
		c.hits = r.Hits
	}
	if r.Feedback != "" && c.verb != store.Refund {
		return fault.Newf("feedback", "%q in a %s: want a refund", r.Feedback, c.verb)
	}
	c.feedback = r.Feedback
	c.values = vector(c.values, c.rules.Set, r.Attributes)
	return nil
}

// vector makes the vector of values in which set finds attributes.
func vector(values []string, set *rule.Set, attributes []Attribute) []string {
	if n := len(set.Attributes()); cap(values) < n {
		values = make([]string, n)
	} else {
		values = values[:n]
		clear(values)
	}
	for i := range attributes {
		if at, ok := set.Attribute(attributes[i].Name); ok {
			values[at] = attributes[i].Value
		}
	}
	return values
}

// build makes one op for each rule that counts.
func (c *call) build() error {
	for _, i := range c.matched {
		if r := c.rules.Rule(i); r.Kind() == rule.KindVerdict {
			if r.Mode == rule.Shadow {
				continue
			}
			if c.verdict < 0 {
				c.verdict = i
				c.veto()
			}
			continue
		}
		to := c
		if c.verdict >= 0 {
			to = c.queue()
		}
		to.ops, to.of = append(to.ops, store.Op{}), append(to.of, i)
		op := &to.ops[len(to.ops)-1]
		if err := c.fill(op, i); err != nil {
			return err
		}
		if c.verdict >= 0 {
			c.follow(op)
		}
	}
	return nil
}

// veto has a verdict that denies a take join its ops, where others decide
// beside it: as one that never fits, so that they say what they would have
// answered, and count nothing.
func (c *call) veto() {
	first := slices.IndexFunc(c.ops, limits)
	if c.verb != store.Take || !c.refused() || first < 0 {
		return
	}
	c.of = append(c.of, c.verdict)
	c.ops = append(c.ops, store.Op{
		Space: c.rules.spaces[c.verdict], Limit: admitsNone, N: 1, Together: c.ops[first].Together,
	})
}

// admitsNone is a limit that nothing fits; never written.
var admitsNone = window.MustCompile(window.Limit{Window: window.Fixed(time.Hour)})

// fill makes op, which is empty, the op of rule i.
func (c *call) fill(op *store.Op, i int) error {
	r := c.rules.Rule(i)
	op.Space, op.Limit, op.N = c.rules.spaces[i], c.rules.LimitOf(i, c.values), c.hits
	op.Role, op.CountDenied = role(r), r.CountDenied
	switch {
	case c.feedback != "":
		op.N = r.Feedback[c.feedback]
	case r.Measure == window.Sum && c.hits > 0:
		n, err := c.rules.Sum(i, c.values)
		if err != nil {
			return fault.Newf("attributes."+r.Of, "rule %s: %v", r.Name, err)
		}
		op.N = n
	}
	// A slice of keys stays good when keys itself moves on to grow.
	from := len(c.keys)
	c.keys = c.rules.AppendKey(c.keys, i, c.values)
	op.Key = c.keys[from:len(c.keys):len(c.keys)]
	if r.Together != "" {
		op.Together = c.keep(c.rules.Together(i, c.values))
	}
	if r.Measure == window.Distinct {
		op.Member = c.keep(c.rules.Member(i, c.values))
	}
	return nil
}

// keep puts text behind the keys.
func (c *call) keep(text string) []byte {
	from := len(c.keys)
	c.keys = append(c.keys, text...)
	return c.keys[from:len(c.keys):len(c.keys)]
}

func role(r *rule.Rule) store.Role {
	switch {
	case r.Kind() != rule.KindLimit:
		return store.Always
	case r.Mode == rule.Shadow:
		return store.Shadow
	}
	return store.Enforce
}

// decides says that the verb asks for an outcome; the others only count.
func (c *call) decides() bool { return c.verb == store.Take || c.verb == store.Check }

// refused says that the request is denied already, whatever the limits answer.
func (c *call) refused() bool {
	verdict := c.verdict >= 0 && !c.rules.Allows(c.verdict)
	return c.decides() && (verdict || c.denied >= 0 || c.local.denied)
}

// hold makes the enforcing ops of a request that is denied already look only,
// or record, where their rules count what was denied.
func hold(ops []store.Op) {
	for i := range ops {
		op := &ops[i]
		switch {
		case op.Role != store.Enforce:
		case op.CountDenied:
			op.Role, op.CountDenied = store.Always, false
		default:
			op.N = 0
		}
	}
}

// ask has the store answer the ops. Those that it cannot answer are taken out
// and follow their rules' policies for outages. A store that fails again is not
// asked a third time: the caller waits for it twice at most.
func (c *call) ask(ctx context.Context, e *Engine) error {
	if len(c.ops) == 0 {
		return ctx.Err()
	}
	for again := false; len(c.ops) > 0; again = true {
		err := e.store.Do(ctx, c.verb, c.ops)
		if err == nil {
			break
		}
		var out *store.OutageError
		if errors.As(err, &out) {
			err = c.drop(ctx, e, out, again)
		}
		if err != nil {
			c.giveBack(ctx, e, func(*store.Op) bool { return true })
			return fmt.Errorf("weir: %s: %w", c.verb, err)
		}
	}
	if c.outage {
		c.settle(ctx, e)
	}
	return nil
}
