package storetest

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/weirhq/weir/internal/step"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// model is the simplest store that keeps the contract: a map under a lock. It never
// drops an expired key. Compare other stores with it by [Compare]. It is safe for concurrent use.
type model struct {
	mu     sync.Mutex
	now    window.Instant
	states map[address]window.State // nil when closed
	seed   maphash.Seed
}

// address identifies a key.
type address struct{ namespace, space, key string }

// NewModel returns an empty model, whose clock shows the instant 0.
func NewModel() Opened {
	m := &model{states: make(map[address]window.State), seed: maphash.MakeSeed()}
	return Opened{Store: m, Set: m.set}
}

func (m *model) set(now window.Instant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = now
}

// Do implements [store.Store].
func (m *model) Do(ctx context.Context, calls []store.Call) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return err
	}
	for i := range calls {
		calls[i].Err = m.call(calls[i].Verb, calls[i].Ops)
	}
	return nil
}

// call decides the ops of one call.
func (m *model) call(verb store.Verb, ops []store.Op) error {
	seen := make(map[address]bool)
	for i := range ops {
		at := addressOf(&ops[i])
		if seen[at] {
			return store.ErrRepeated
		}
		seen[at] = true
	}
	for i := range ops {
		if h := ops[i].Hold; h != nil {
			h.Decided = m.now
		}
	}
	if verb == store.Cancel {
		m.cancel(ops)
		return nil
	}
	if verb == store.Take {
		for i := range ops {
			if op := &ops[i]; op.UpTo {
				op.Result = m.apply(store.Check, op)
			}
		}
		store.LowerUpTo(ops)
	}
	// A take evaluates all enforcing ops before it counts any.
	admitted := true
	for i := range ops {
		op := &ops[i]
		op.Result = m.apply(store.Check, op)
		if verb == store.Take && op.Role == store.Enforce {
			admitted = admitted && op.Result.Allowed
		}
	}
	for i := range ops {
		switch op := &ops[i]; {
		case verb == store.Take && op.Role == store.Always:
			op.Result = m.apply(always, op)
		case verb == store.Take:
			m.take(op, admitted)
		default:
			op.Result = m.apply(verb, op)
		}
	}
	return nil
}

// take counts op, whose result is that of a check, if it fits and, unless it is
// a shadow op, all enforcing ops were admitted.
func (m *model) take(op *store.Op, admitted bool) {
	own := op.Result
	switch {
	case own.Allowed && op.Role != store.Look && (admitted || op.Role == store.Shadow):
		op.Result = m.apply(store.Take, op)
		return
	case !own.Allowed && op.Limit.Ban.For > 0:
		own = m.apply(store.Take, op) // a strike
		op.Result = own
	}
	if op.CountDenied {
		r := m.apply(denied, op)
		r.Allowed, r.RetryAfter, r.Struck = own.Allowed, own.RetryAfter, own.Struck
		if later := m.apply(store.Check, op); !own.Allowed && !later.Allowed {
			r.RetryAfter = later.RetryAfter
		}
		op.Result = r
	}
}

// Further verbs of apply, in addition to those of [store.Verb].
const (
	always   store.Verb = 64 + iota // a take of an always op
	denied                          // a take that was denied, with CountDenied
	giveBack                        // a cancel without a hold
)

// cancel ends the holds of ops. If it finds one, it gives back what the same take
// counted without holds.
func (m *model) cancel(ops []store.Op) {
	found := false
	for i := range ops {
		ops[i].Result = m.apply(store.Cancel, &ops[i])
		found = found || ops[i].Result.Held
	}
	for i := range ops {
		if op := &ops[i]; op.Hold != nil && (found || op.Hold.Sure) && !op.Result.Held && op.Limit.HoldLength() == 0 && op.N > 0 {
			op.Result = m.apply(giveBack, op)
		}
	}
}

// apply runs v on the state of op.
func (m *model) apply(v store.Verb, op *store.Op) (r window.Result) {
	at := addressOf(op)
	state := slices.Clone(m.states[at])
	hits := window.Hits{N: op.N, Member: maphash.Bytes(m.seed, op.Member)}
	var hold store.Hold
	if op.Hold != nil {
		hold = *op.Hold
	}
	do := step.Take
	switch v {
	case store.Check:
		return op.Limit.Check(state, m.now, hits)
	case always:
		do = step.RecordNow
	case denied:
		do = step.RecordDenied
	case store.Record:
		if do = step.Record; hold.NoStrike {
			do = step.RecordNoStrike
		}
	case store.Refund:
		do = step.Refund
	case store.Settle:
		do = step.Settle
	case store.Cancel:
		do, hits.N = step.Settle, 0
	case store.Renew:
		do = step.Renew
	case giveBack:
		do = step.GiveBack
	}
	m.states[at] = op.Limit.Do(do, &r, state, m.now, hits, &hold.Hold)
	return r
}

// Read implements [store.Store].
func (m *model) Read(ctx context.Context, op *store.Op) (window.Reading, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return window.Reading{}, err
	}
	return op.Limit.Read(slices.Clone(m.states[addressOf(op)]), m.now), nil
}

// State returns a copy of the state of op's key, empty when there is none.
func (m *model) State(op *store.Op) window.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.states[addressOf(op)])
}

// Forget implements [store.Store].
func (m *model) Forget(ctx context.Context, op *store.Op) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return err
	}
	delete(m.states, addressOf(op))
	return nil
}

// Close implements [store.Store].
func (m *model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.states = nil
	return nil
}

func (m *model) ready(ctx context.Context) error {
	if m.states == nil {
		return store.ErrClosed
	}
	return ctx.Err()
}

func addressOf(op *store.Op) address {
	return address{op.Space.Namespace(), op.Space.ID(), string(op.Key)}
}
