package storetest

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"

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
		calls[i].Err = m.call(&calls[i])
	}
	return nil
}

// Keys lists the keys of a space, all at once; see [hook.Lister].
func (m *model) Keys(ctx context.Context, op *store.Op, _ []byte, found func(key []byte, state window.State, now window.Instant)) (next []byte, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := addressOf(op)
	for at, state := range m.states {
		if at.namespace == of.namespace && at.space == of.space && len(state) > 0 {
			found([]byte(at.key), slices.Clone(state), m.now)
		}
	}
	return nil, m.ready(ctx)
}

// call decides one call.
func (m *model) call(c *store.Call) error {
	all := slices.Clone(c.Ops)
	if c.Once != nil {
		all = append(all, *c.Once)
	}
	seen := make(map[address]bool)
	states := make([]window.State, len(all))
	for i := range all {
		at := addressOf(&all[i])
		if seen[at] {
			return store.ErrRepeated
		}
		seen[at] = true
		states[i] = slices.Clone(m.states[at])
	}
	c.Err = nil
	store.Decide(c, states, func(*store.Op) window.Instant { return m.now }, func(member []byte) uint64 { return maphash.Bytes(m.seed, member) })
	for i := range all {
		m.states[addressOf(&all[i])] = states[i]
	}
	return c.Err
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
