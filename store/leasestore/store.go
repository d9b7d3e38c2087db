package leasestore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/lease"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// leases is a store that decides for hot keys from memory, and has the shared store decide all else.
type leases struct {
	shared store.Store
	nodes  func() int
	began  time.Time

	keys table

	mu     sync.Mutex // of closed, and of work.Add
	closed bool       // guarded by mu
	work   sync.WaitGroup

	audit *audit // nil but in tests; set before the store is used

	counts
}

// counts are the numbers of [hook.Leases].
type counts struct {
	asked, refused, lost, granted, spent, returned, dropped, settled, direct atomic.Int64
}

// New returns a store that leases parts of the quotas in shared. nodes returns the number of processes that
// lease there; it is called now and then, and may change. Less than 1 means 1. A smaller number than there are makes the parts
// uneven, and is no error. Closing the store gives back its leases, and closes shared.
func New(shared store.Store, nodes func() int) store.Store {
	return &leases{shared: shared, nodes: nodes, began: time.Now()}
}

// audit is what [hook.LeaseAuditor] sets.
type audit struct {
	clock    func() int64
	admitted func(at, hits int64)
}

// Audit implements [hook.LeaseAuditor].
func (s *leases) Audit(clock func() int64, admitted func(at, hits int64)) {
	s.audit = &audit{clock, admitted}
}

// now reads the steady clock.
func (s *leases) now() lease.Time {
	if s.audit != nil {
		return lease.Time(s.audit.clock())
	}
	return lease.Time(time.Since(s.began))
}

// begin reports whether s is open. If so, the caller has to call s.work.Done, which Close waits for.
func (s *leases) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	return true
}

// Do implements [store.Store].
func (s *leases) Do(ctx context.Context, calls []store.Call) error {
	if len(calls) != 1 {
		return s.doAll(ctx, calls)
	}
	c := &calls[0]
	switch {
	case !mayLease(c):
		return s.shared.Do(ctx, calls)
	case len(c.Ops) == 1 && s.decideOne(ctx, c):
		return nil
	}
	return s.decide(ctx, calls)
}

// mayLease reports whether a limit of c asks for leases.
func mayLease(c *store.Call) bool {
	for i := range c.Ops {
		if c.Ops[i].Limit.Lease != 0 {
			return true
		}
	}
	return false
}

// leasable reports whether all ops of c can be decided from memory as far as the call is concerned.
func leasable(c *store.Call) bool {
	if c.Verb > store.Take || c.Once != nil {
		return false
	}
	for i := range c.Ops {
		if c.Ops[i].Hold != nil || c.Ops[i].UpTo {
			return false
		}
	}
	return true
}

// plain reports whether op can be decided from memory if its key is leased.
func plain(op *store.Op) bool {
	return op.Limit.Lease != 0 && op.N > 0 && (op.Role <= store.Shadow || op.Role == store.Look) && !op.CountDenied
}

// decideOne decides a call with one op from memory, without waiting. It reports whether it did.
func (s *leases) decideOne(ctx context.Context, c *store.Call) bool {
	op := &c.Ops[0]
	if !leasable(c) || !plain(op) || ctx.Err() != nil {
		return false
	}
	e := s.keys.find(op)
	if e == nil {
		return false
	}
	v, known := e.key.View(), e.known.Load()
	if known.limit != op.Limit.Limit {
		return false
	}
	now := s.now()
	var d lease.Decision
	if c.Verb == store.Take && op.Role != store.Look {
		d = v.Decide(now, op.N)
	} else {
		d = v.Look(now, op.N)
	}
	switch d.Answer {
	case lease.Empty:
		return false
	case lease.Admitted:
		if v.Due(d, now) {
			e.renew(s, now)
		}
	}
	counted := c.Verb == store.Take && op.Role != store.Look && d.Answer == lease.Admitted
	if counted && s.audit != nil {
		s.audit.admitted(int64(now), op.N)
	}
	known.answer(op, d, now, counted)
	c.Err = nil
	return true
}

// part is what memory says of one op.
type part struct {
	e     *entry
	known *known
	now   lease.Time
	lease.Decision
	took bool
}

// stackOps is the number of ops of a call whose parts are on the stack.
const stackOps = 8

// decide decides a single call. It waits for leases that are asked for.
func (s *leases) decide(ctx context.Context, calls []store.Call) (err error) {
	c := &calls[0]
	var few [stackOps]part
	parts := few[:]
	if len(c.Ops) > stackOps {
		parts = make([]part, len(c.Ops))
	}
	parts = parts[:len(c.Ops)]
	if !s.fromMemory(ctx, c, parts, true) {
		s.direct.Add(1)
		return s.shared.Do(ctx, calls)
	}
	direct, of := rest(c, parts)
	if c.Err = nil; len(direct) > 0 {
		s.direct.Add(1)
		one := [1]store.Call{{Verb: c.Verb, Ops: direct}}
		err = s.shared.Do(ctx, one[:])
		c.Err = one[0].Err
	}
	s.finish(c, parts, direct, of, err)
	return err
}

// doAll decides several calls. It does not wait for leases, and asks the shared store once for all that is left.
func (s *leases) doAll(ctx context.Context, calls []store.Call) error {
	type left struct {
		parts []part
		of    []int
	}
	var asked []store.Call
	var index []int
	lefts := make([]left, len(calls))
	for i := range calls {
		c := &calls[i]
		if mayLease(c) {
			parts := make([]part, len(c.Ops))
			if s.fromMemory(ctx, c, parts, false) {
				direct, of := rest(c, parts)
				lefts[i] = left{parts, of}
				if c.Err = nil; len(direct) == 0 {
					s.finish(c, parts, nil, nil, nil)
					continue
				}
				s.direct.Add(1)
				asked, index = append(asked, store.Call{Verb: c.Verb, Ops: direct}), append(index, i)
				continue
			}
			s.direct.Add(1)
		}
		asked, index = append(asked, *c), append(index, i)
	}
	if len(asked) == 0 {
		return nil
	}
	err := s.shared.Do(ctx, asked)
	for n, i := range index {
		c := &calls[i]
		c.Err = asked[n].Err
		if lefts[i].parts != nil {
			s.finish(c, lefts[i].parts, asked[n].Ops, lefts[i].of, err)
		}
	}
	return err
}

// fromMemory decides what it can of c. It returns false if that is nothing, and the whole call is for the store.
func (s *leases) fromMemory(ctx context.Context, c *store.Call, parts []part, wait bool) bool {
	if !leasable(c) {
		if c.Verb > store.Record {
			for i := range c.Ops {
				s.recall(ctx, &c.Ops[i])
			}
		}
		return false
	}
	some, mixed, take := false, false, c.Verb == store.Take
	for i := range c.Ops {
		if op := &c.Ops[i]; plain(op) {
			if parts[i].e = s.entry(op, take); parts[i].e != nil {
				parts[i].known = parts[i].e.follow(ctx, s, op)
			}
		}
		some, mixed = some || parts[i].known != nil, mixed || parts[i].known == nil
	}
	if !some {
		return false
	}
	if wait && take {
		for i := range parts {
			if p := &parts[i]; p.known != nil {
				p.e.await(ctx, s, c.Ops[i].N)
			}
		}
	}
	some = false
	for i := range parts {
		p, op := &parts[i], &c.Ops[i]
		if p.known == nil {
			continue
		}
		p.known = p.e.known.Load()
		p.took = take && op.Role != store.Look
		view := p.e.key.View()
		switch p.now = s.now(); {
		case !p.took:
			p.Decision = view.Look(p.now, op.N)
		case !mixed || view.Refuses(p.now) || p.e.outlasts(view, p.now):
			p.Decision = view.Decide(p.now, op.N)
		}
		switch {
		case p.Answer == lease.Empty && p.took:
			if op.N > 1 && view.Left(p.now) > 0 {
				p.e.recall(ctx, s) // so that the store can admit them with what is leased here
			}
			p.e.unserved(s, op.N)
		case p.Answer == lease.Admitted && view.Due(p.Decision, p.now):
			p.e.renew(s, p.now)
		}
		some = some || p.Answer != lease.Empty
	}
	return some
}

// rest returns the ops of c that the store has to decide, and their indexes. It only evaluates them
// if memory has denied the take.
func rest(c *store.Call, parts []part) (ops []store.Op, of []int) {
	denied := false
	for i := range parts {
		denied = denied || parts[i].Answer == lease.Refused && c.Ops[i].Role == store.Enforce
	}
	for i := range parts {
		if parts[i].Answer != lease.Empty {
			continue
		}
		op := c.Ops[i]
		if denied && op.Role == store.Enforce && c.Verb == store.Take {
			op.Role = store.Look
		}
		ops, of = append(ops, op), append(of, i)
	}
	return ops, of
}

// finish writes the results of c, of which memory has decided at least one op. err is that of the store's Do for the direct ops.
func (s *leases) finish(c *store.Call, parts []part, direct []store.Op, of []int, err error) {
	denied := false
	for n, i := range of {
		c.Ops[i].Result, c.Ops[i].N = direct[n].Result, direct[n].N
		denied = denied || direct[n].Role == store.Enforce && !direct[n].Result.Allowed
	}
	failed := err != nil || !hook.HasResults(c.Err)
	for i := range parts {
		denied = denied || parts[i].Answer == lease.Refused && c.Ops[i].Role == store.Enforce
	}
	for i := range parts {
		p, op := &parts[i], &c.Ops[i]
		if p.Answer == lease.Empty {
			continue
		}
		counted := p.took && p.Answer == lease.Admitted
		if counted && (failed || denied && op.Role == store.Enforce) {
			if p.From != nil {
				p.From.Return(op.N)
				p.e.back.Add(op.N)
				p.Left += op.N
			}
			counted = false
		}
		if counted && s.audit != nil {
			s.audit.admitted(int64(p.now), op.N)
		}
		if !failed {
			p.known.answer(op, p.Decision, p.now, counted)
		}
	}
	if out, ok := errors.AsType[*store.OutageError](c.Err); ok {
		moved := *out
		if moved.Ops = of; out.Ops != nil {
			moved.Ops = make([]int, len(out.Ops))
			for n, i := range out.Ops {
				moved.Ops[n] = of[i]
			}
		}
		c.Err = &moved
	}
}

// Read implements [store.Store]. It recalls the leases of this process on the key.
func (s *leases) Read(ctx context.Context, op *store.Op) (window.Reading, error) {
	s.recall(ctx, op)
	return s.shared.Read(ctx, op)
}

// Forget implements [store.Store].
func (s *leases) Forget(ctx context.Context, op *store.Op) error {
	s.recall(ctx, op)
	return s.shared.Forget(ctx, op)
}

// Close implements [store.Store].
func (s *leases) Close() error {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	s.mu.Unlock()
	if !already {
		s.work.Wait() // nothing is asked for, and no entry is added, afterwards
		var calls []store.Call
		s.keys.all(func(e *entry) { calls = append(calls, e.end(s)...) })
		s.send(context.Background(), calls) // together: there can be thousands of keys
	}
	return s.shared.Close()
}

// recall gives back what this process has leased of the key of op.
func (s *leases) recall(ctx context.Context, op *store.Op) {
	if op.Limit.Lease == 0 {
		return
	}
	if e := s.keys.find(op); e != nil {
		e.recall(ctx, s)
	}
}

// Lister returns how the keys of the shared store are listed, or nil. It recalls the leases of this process first.
func (s *leases) Lister() hook.Lister {
	if shared := hook.ListerOf(s.shared); shared != nil {
		return lister{s, shared}
	}
	return nil
}

type lister struct {
	*leases
	shared hook.Lister
}

// Keys implements [hook.Lister].
func (l lister) Keys(ctx context.Context, op *store.Op, after []byte, found func([]byte, window.State, window.Instant)) ([]byte, error) {
	if after == nil && op.Limit.Lease != 0 {
		l.keys.all(func(e *entry) {
			if e.op.Space.Same(op.Space) {
				e.recall(ctx, l.leases)
			}
		})
	}
	return l.shared.Keys(ctx, op, after, found)
}

// Leases implements [hook.Leaser].
func (s *leases) Leases() hook.Leases {
	n := hook.Leases{
		Asked: s.asked.Load(), Refused: s.refused.Load(), Lost: s.lost.Load(),
		Granted: s.granted.Load(), Spent: s.spent.Load(), Returned: s.returned.Load(), Dropped: s.dropped.Load(),
		Settled: s.settled.Load(), Direct: s.direct.Load(),
	}
	s.keys.all(func(*entry) { n.Keys++ })
	return n
}

// Leased implements [hook.Leaser].
func (s *leases) Leased(op *store.Op) bool {
	if !plain(op) || op.Hold != nil {
		return false
	}
	e := s.keys.find(op)
	return e != nil && *e.known.Load().limit == *op.Limit.Limit && e.key.View().Look(s.now(), op.N).Answer != lease.Empty
}

// Hooks implements [hook.Hooked].
func (s *leases) Hooks(store.Store) hook.Hooks {
	h := hook.Of(s.shared)
	h.Memory = nil // its calls have to go through s
	return h
}
