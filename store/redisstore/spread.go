package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/conn"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// group is the part of a call whose keys are in one slot, which decides it in one
// step.
type group struct {
	slot     int
	which    []int          // of the call's ops
	at       window.Instant // when it was decided
	admitted bool           // it denies nothing; set once all are decided
	once     *store.Op      // of the record of its part of the call; nil: none
	err      error
}

// slot returns the slot of the first op, and reports whether all others are in
// it too. Without a cluster they are.
func (s *Store) slot(ops []store.Op) (slot int, all bool) {
	if !s.servers.Sharded() {
		return 0, true
	}
	for i := range ops {
		own := s.slotOf(&ops[i])
		if i > 0 && own != slot {
			return slot, false
		}
		slot = own
	}
	return slot, true
}

func (s *Store) slotOf(op *store.Op) int {
	var buf [128]byte
	return conn.SlotOfTag(s.codec.Names().AppendTag(buf[:0], op))
}

// groups returns ops in groups by their slots, in the order of the ops.
func (s *Store) groups(ops []store.Op) []group {
	var groups []group
	for i := range ops {
		slot := s.slotOf(&ops[i])
		at := slices.IndexFunc(groups, func(g group) bool { return g.slot == slot })
		if at < 0 {
			at = len(groups)
			groups = append(groups, group{slot: slot})
		}
		groups[at].which = append(groups[at].which, i)
	}
	return groups
}

// spread runs a call whose keys are in several slots. Each group is decided in
// its own call, all at the same time. When one of them denies a take, or
// gives no answer, the others give back exactly what they have counted; what has ended or renewed holds stays. Until
// then other calls may be denied because of it; no call is ever admitted because
// of it. Each group of a call with a record has a record of its own, which is dropped in the step that gives back
// what the group has counted: the same call then has the group decide anew. A group that only had the record gives
// nothing back: the call that made it does.
//
// A group that gives no answer gives nothing back: it may not have counted, and
// what was not counted must not be given back. One that only lacks confirmations
// has counted like those that have them. A fifth of the time is left for
// the others to give back: a caller who then asks for only their ops must not be
// denied because of its own hits.
//
// Hits up to what fits, and those of a reserve, are those that fit in all groups a moment before.
func (s *Store) spread(ctx context.Context, r script.Call) error {
	if r.Verb == store.Reserve || r.Verb == store.Take && slices.ContainsFunc(r.Ops, func(op store.Op) bool { return op.UpTo }) {
		return s.spreadUpTo(ctx, r)
	}
	return s.spreadAll(ctx, r)
}

// spreadAll is spread for hits that are known.
func (s *Store) spreadAll(ctx context.Context, r script.Call) error {
	groups := s.groups(r.Ops)
	for i := range groups {
		if !s.servers.Ready(groups[i].slot) {
			groups[i].err = remote.ErrUnavailable
		}
	}
	if err := outageOf(groups); err != nil {
		return err // before anything is counted
	}
	answer, cancel := remote.WithinPart(ctx, s.config.Timeout, 4, 5)
	defer cancel()
	each(groups, func(g *group) { s.decideGroup(answer, &r, g, false) })
	unconfirmed := takeUnconfirmed(groups)
	err := outageOf(groups)
	if out, ok := errors.AsType[*store.OutageError](err); ok && r.Verb.NeedsReceipt() && len(out.Ops) < len(r.Ops) {
		out.Uncounted = false // the others have ended their holds
	}
	if r.Once != nil {
		r.Once.Result = window.Result{Allowed: true}
		recall(r.Once, r.Ops, groups)
	}
	switch {
	case r.Verb == store.Cancel:
		s.cancelRest(answer, &r, groups)
	case err != nil:
		s.giveBack(ctx, &r, groups, everything)
	case r.Verb == store.Take && (slices.ContainsFunc(r.Ops, func(op store.Op) bool { return denies(&op) }) || r.Once != nil && !r.Once.Result.Allowed):
		s.giveBack(ctx, &r, groups, enforced)
		return nil
	case r.Verb == store.Reserve && slices.ContainsFunc(r.Ops, func(op store.Op) bool { return !op.Result.Allowed }):
		s.giveBack(ctx, &r, groups, everything)
		return nil
	}
	if err == nil {
		err = unconfirmed
	}
	return err
}

// spreadUpTo checks what fits, and takes or reserves it.
func (s *Store) spreadUpTo(ctx context.Context, r script.Call) error {
	part := r
	part.Verb, part.Ops, part.Once = store.Check, slices.Clone(r.Ops), nil
	if err := s.spreadAll(ctx, part); err != nil {
		return err
	}
	store.LowerUpTo(r.Verb, part.Ops)
	part.Verb, part.Once = r.Verb, r.Once
	for i := range part.Ops {
		op := &part.Ops[i]
		op.UpTo = false
		if h := op.Hold; h != nil && r.Verb == store.Reserve { // all of it
			own := *h
			own.Least, own.Part, op.Hold = op.N, 1, &own
		}
	}
	err := s.spreadAll(ctx, part)
	if err != nil && conn.ReasonOf(err) != remote.Unconfirmed {
		return err
	}
	for i := range r.Ops {
		op, own := &r.Ops[i], &part.Ops[i]
		op.N, op.Result = own.N, own.Result
		if h := op.Hold; h != nil && h != own.Hold {
			if h.Decided = own.Hold.Decided; op.Result.Held {
				h.Hold = own.Hold.Hold
			}
		}
	}
	return err
}

// decideGroup makes the slot of g decide its ops of r, and writes their results. sure is for a
// cancel: the take was admitted.
func (s *Store) decideGroup(ctx context.Context, r *script.Call, g *group, sure bool) {
	part := *r
	part.Ops = make([]store.Op, len(g.which))
	for n, i := range g.which {
		part.Ops[n] = r.Ops[i]
		if h := r.Ops[i].Hold; sure && h != nil {
			hold := *h
			hold.Sure = true
			part.Ops[n].Hold = &hold
		}
	}
	if r.Once != nil {
		own := *r.Once
		g.once, part.Once, part.Beside, part.IsPart = &own, &own, &part.Ops[0], true
	}
	if g.at, g.err = s.servers.Run(ctx, g.slot, part); g.err != nil && !g.unconfirmed() {
		return
	}
	for n, i := range g.which {
		r.Ops[i].Result, r.Ops[i].N = part.Ops[n].Result, part.Ops[n].N
	}
}

// unconfirmed reports whether g has counted, and too few replicas have confirmed that.
func (g *group) unconfirmed() bool { return g.err != nil && conn.ReasonOf(g.err) == remote.Unconfirmed }

// takeUnconfirmed makes groups that are unconfirmed ones that have answered, and returns their outage, if there are any.
func takeUnconfirmed(groups []group) error {
	var lacking []group
	for i := range groups {
		if g := &groups[i]; g.unconfirmed() {
			lacking = append(lacking, *g)
			g.err = nil
		}
	}
	return outageOf(lacking)
}

// recall sets the result of once by the records of the groups. A take that one group has denied, now or before, is
// denied.
func recall(once *store.Op, ops []store.Op, groups []group) {
	found := &once.Result
	for i := range groups {
		switch g := &groups[i]; {
		case g.err != nil:
		case g.once.Result.Before > 0:
			found.Before, found.Used = 1, 1
			if r := &g.once.Result; !r.Allowed {
				script.Deny(found, r.RetryAfter)
			}
		default:
			for _, i := range g.which {
				if denies(&ops[i]) {
					script.Deny(found, ops[i].Result.RetryAfter)
				}
			}
		}
	}
}

// cancelRest makes the groups that found no hold give back what the take counted there,
// when another group has found its hold. It sends this call once: a group that gives
// no answer keeps the hits until they age.
func (s *Store) cancelRest(ctx context.Context, r *script.Call, groups []group) {
	var found bool
	var left []group
	for _, g := range groups {
		if g.err != nil {
			continue
		}
		if slices.ContainsFunc(g.which, func(i int) bool { return r.Ops[i].Result.Held }) {
			found = true
		} else {
			left = append(left, g)
		}
	}
	if found && len(left) > 0 {
		each(left, func(g *group) { s.decideGroup(ctx, r, g, true) })
	}
}

// each calls f for all groups at the same time. Calls to one node share its
// connections, and may be batched.
func each(groups []group, f func(*group)) {
	var others sync.WaitGroup
	for i := range groups[1:] {
		others.Go(func() { f(&groups[i+1]) })
	}
	f(&groups[0])
	others.Wait()
}

// outageOf returns the outage of the groups without an answer, if there are any.
func outageOf(groups []group) error {
	var out *store.OutageError
	for i := range groups {
		g := &groups[i]
		switch {
		case script.IsRefusal(g.err):
			return g.err
		case g.err == nil:
			continue
		}
		this := conn.Outage(g.err)
		if out == nil {
			out = this
		}
		out.Uncounted = out.Uncounted && this.Uncounted
		out.Ops = append(out.Ops, g.which...)
	}
	if out == nil {
		return nil
	}
	slices.Sort(out.Ops)
	return out
}

// denies reports whether op denies its take. An op that a record has no result for does not.
func denies(op *store.Op) bool {
	return op.Role == store.Enforce && !op.Result.Allowed && op.Result != (window.Result{})
}

// giveBackTime returns how long giving back may take: a second, or the time-out if that is
// longer. Hits that are not given back by then age like all others.
func (s *Store) giveBackTime() time.Duration { return max(time.Second, s.config.Timeout) }

// enforced reports whether a take that was denied has counted op, in a group that
// admitted it, and must give it back.
func enforced(g *group, verb store.Verb, op *store.Op) bool {
	return op.Role == store.Enforce && !op.CountDenied && everything(g, verb, op)
}

// everything reports whether a group has counted op.
func everything(g *group, verb store.Verb, op *store.Op) bool {
	switch {
	case op.N <= 0 || g.err != nil || verb.NeedsReceipt():
		return false // what ended is over, and what was not decided has counted nothing
	case g.once != nil && g.once.Result.Before > 0:
		return false
	case verb == store.Reserve:
		return op.Result.Held
	case verb == store.Take && op.Role == store.Enforce:
		return g.admitted || op.CountDenied
	case verb == store.Take && op.Role == store.Shadow:
		return op.Result.Allowed || op.CountDenied
	case verb == store.Refund && op.Limit.Measure != window.Distinct:
		return op.Result.Used < op.Result.Before
	case verb == store.Refund:
		return op.Result.Before > 0
	}
	return verb != store.Check
}

// newest is the first of the calls that give newest hits back.
const newest = 2

// giveBack undoes what the groups have counted of the ops for which pick returns
// true, and corrects their results. It waits for that until ctx is done.
func (s *Store) giveBack(ctx context.Context, r *script.Call, groups []group, pick func(*group, store.Verb, *store.Op) bool) {
	var undos []*undo
	for i := range groups {
		g := &groups[i]
		g.admitted = g.err == nil && !slices.ContainsFunc(g.which, func(i int) bool { return denies(&r.Ops[i]) })
		// Hits that leave their window soon are given back in a call of their
		// own: when it is too late for them, it need not be for the rest.
		// Hits in groups have no separate dates: the newest are given back.
		var calls [4][]int
		for _, i := range g.which {
			op := &r.Ops[i]
			if !pick(g, r.Verb, op) {
				continue
			}
			n := 0
			if script.Inside(op, g.at) >= s.giveBackTime() {
				n = 1
			}
			if r.Verb != store.Refund && !op.Result.Held && script.InGroups(op.Limit) {
				n += newest
			}
			calls[n] = append(calls[n], i)
		}
		for n, which := range calls {
			if len(which) > 0 {
				undos = append(undos, newUndo(r, g, which, n >= newest))
			}
		}
	}
	for _, u := range undos {
		if !s.background(func() { u.run(s.servers, s.giveBackTime()) }) {
			u.err = store.ErrClosed
			close(u.done)
		}
	}
	for _, u := range undos {
		select {
		case <-u.done:
			u.report(r.Ops)
		case <-ctx.Done():
		}
	}
}

// undo is a call that gives back hits of one group.
type undo struct {
	slot  int
	which []int // of the call's ops
	call  script.Call
	err   error         // set when it is done
	done  chan struct{} // closed then
}

func newUndo(r *script.Call, g *group, which []int, inGroups bool) *undo {
	u := &undo{slot: g.slot, which: which, done: make(chan struct{})}
	u.call = script.Call{Verb: store.Cancel, Now: r.Now}
	if g.once != nil {
		once, beside := *g.once, r.Ops[g.which[0]]
		once.Key, once.Member = slices.Clone(once.Key), slices.Clone(once.Member)
		beside.Key, beside.Together = slices.Clone(beside.Key), slices.Clone(beside.Together)
		u.call.Once, u.call.Beside, u.call.Drops = &once, &beside, true
	}
	for _, i := range which {
		op := r.Ops[i]
		// The caller may use its slices again before this is done.
		op.Key, op.Member, op.Together = slices.Clone(op.Key), slices.Clone(op.Member), slices.Clone(op.Together)
		hold := store.Hold{Hold: window.Hold{At: g.at}, Sure: true}
		if op.Hold != nil {
			hold.ID = op.Hold.ID
		}
		op.Hold = &hold
		if inGroups {
			u.call.Verb, op.Hold = store.Refund, nil
		}
		if r.Verb == store.Reserve {
			u.call.Verb, op.N = store.Settle, 0 // which finds the hold or nothing
		}
		if r.Verb == store.Refund {
			op.Hold = nil
			u.call.Verb = store.Record
			if op.Limit.Measure != window.Distinct {
				op.N = op.Result.Before - op.Result.Used
			}
		}
		u.call.Ops = append(u.call.Ops, op)
		// Once the hits are out of their window there is nothing to give back, and a
		// refund would take the hits of other callers.
		if r.Verb != store.Refund && r.Now == 0 {
			until := g.at.Add(script.Inside(&op, g.at)) - 1
			if u.call.Deadline == 0 || until < u.call.Deadline {
				u.call.Deadline = until
			}
		}
	}
	return u
}

func (u *undo) run(on *conn.Servers, within time.Duration) {
	defer close(u.done)
	ctx, cancel := remote.Within(context.Background(), within)
	defer cancel()
	_, u.err = on.Run(ctx, u.slot, u.call)
}

// report writes the results of a check to the ops of a denied take: each fits,
// and was not counted.
func (u *undo) report(ops []store.Op) {
	for n, i := range u.which {
		r, now := &ops[i].Result, u.call.Ops[n].Result
		r.Used, r.Held = r.Before, false
		if u.err == nil {
			r.Used, r.Before, r.ResetAfter = now.Used, now.Used, now.ResetAfter
		}
		if r.Quota != window.Unlimited {
			r.Remaining = max(0, r.Quota-r.Used)
		}
	}
}
