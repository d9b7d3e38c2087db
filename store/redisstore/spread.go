package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/script"
	"github.com/weirhq/weir/store/redisstore/internal/wire"
	"github.com/weirhq/weir/window"
)

// group is the part of a call whose keys are in one slot, which decides it in one
// step.
type group struct {
	slot     int
	which    []int
	at       window.Instant // when it was decided
	admitted bool           // it denies nothing; set once all are decided
	err      error
}

// slot returns the slot of the first op, and reports whether all others are in
// it too.
func (s *Store) slot(ops []store.Op) (slot int, all bool) {
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
	return wire.SlotOfTag(s.codec.Names().AppendTag(buf[:0], op))
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
// a step of its own, all at the same time. When one of them denies a take, or
// gives no answer, the others give back exactly what they have counted. Until
// then other calls may be denied because of it; no call is ever admitted because
// of it.
//
// A group that gives no answer gives nothing back: it may not have counted, and
// what was not counted must not be given back. A fifth of the time is left for
// the others to give back: a caller who then asks for their ops alone must not be
// denied because of its own hits.
func (s *Store) spread(ctx context.Context, r *script.Step, groups []group) error {
	for i := range groups {
		if !s.servers.Ready(groups[i].slot) {
			groups[i].err = wire.ErrUnavailable
		}
	}
	if err := failed(groups); err != nil {
		return err // before anything is counted
	}
	answer, cancel := wire.WithinPart(ctx, s.config.Timeout, 4, 5)
	defer cancel()
	each(groups, func(g *group) {
		part := *r
		part.Which = g.which
		g.at, g.err = s.servers.Run(answer, g.slot, part)
	})
	err := failed(groups)
	switch {
	case r.Verb == store.Cancel:
		s.follow(answer, r, groups)
	case err != nil:
		s.giveBack(ctx, r, groups, everything)
	case r.Verb == store.Take && slices.ContainsFunc(r.Which, func(i int) bool { return denies(&r.Ops[i]) }):
		s.giveBack(ctx, r, groups, enforced)
	}
	return err
}

// follow has the groups that found no hold give back what the take counted there,
// when another group has found its hold. It sends this step once: a group that gives
// no answer keeps the hits until they age.
func (s *Store) follow(ctx context.Context, r *script.Step, groups []group) {
	held := func(i int) bool { return r.Ops[i].Result.Held }
	if !slices.ContainsFunc(groups, func(g group) bool { return g.err == nil && slices.ContainsFunc(g.which, held) }) {
		return
	}
	var left []group
	for _, g := range groups {
		if g.err == nil && !slices.ContainsFunc(g.which, held) {
			left = append(left, g)
		}
	}
	if len(left) == 0 {
		return
	}
	each(left, func(g *group) {
		part := *r
		part.Which, part.Ops = upTo(len(g.which)), make([]store.Op, len(g.which))
		for n, i := range g.which {
			part.Ops[n] = r.Ops[i]
			if h := r.Ops[i].Hold; h != nil {
				sure := *h
				sure.Sure = true
				part.Ops[n].Hold = &sure
			}
		}
		if _, err := s.servers.Run(ctx, g.slot, part); err != nil {
			return
		}
		for n, i := range g.which {
			r.Ops[i].Result = part.Ops[n].Result
		}
	})
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

// failed returns the outage of the groups without an answer, if there are any.
func failed(groups []group) error {
	var out *store.OutageError
	for i := range groups {
		g := &groups[i]
		switch {
		case errors.Is(g.err, store.ErrRepeated):
			return g.err
		case g.err == nil:
			continue
		}
		this := wire.Outage(g.err)
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

// denies reports whether op denies its take.
func denies(op *store.Op) bool { return op.Role == store.Enforce && !op.Result.Allowed }
