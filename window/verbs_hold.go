package window

import "github.com/weirhq/weir/internal/step"

// holds is what limits need whose takes hold, whose states can have holds, or which keep
// closed periods. Its
// functions take no pointers, which would escape.
type holds struct {
	held func(l *Limit) algorithm           // compiles a held window
	kept func(l *Limit) algorithm           // compiles a calendar window that keeps closed periods
	wrap func(l *Limit, a algorithm) holder // adds holds to a kind; nil: it cannot hold
	end  func(l Compiled, v step.Step, s State, now Instant, h Hits, hold Hold) (State, Result, Hold)
}

var withHolds = holds{newHeld, newKept, newHolding, Compiled.end}

// end implements [Compiled.Do] for the verbs about an earlier take, and for a reserve, which moves
// the hold.
func (l Compiled) end(v step.Step, s State, now Instant, h Hits, hold Hold) (_ State, r Result, _ Hold) {
	switch v {
	case step.Reserve, step.CanReserve:
		s = l.reserve(&r, v, s, now, h.clean(), &hold)
	case step.Settle:
		s = l.settle(&r, s, now, hold.ID, h.N)
	case step.Renew:
		s = l.renew(&r, s, now, hold.ID)
	case step.GiveBack:
		s = l.giveBack(&r, s, now, hold, h)
	}
	return s, r, hold
}

func (l *Compiled) settle(r *Result, s State, now Instant, id [12]byte, n int64) State {
	return l.change(r, s, now, func(in State, now Instant, _ banState) (State, bool) {
		if w := l.holder(in); w != nil {
			return w.end(in, now, id, n)
		}
		return in, false
	})
}

func (l *Compiled) renew(r *Result, s State, now Instant, id [12]byte) State {
	return l.change(r, s, now, func(in State, now Instant, _ banState) (State, bool) {
		w := l.holder(in)
		if w == nil || l.HoldLength() == 0 {
			return in, false
		}
		return w.renew(in, now, id, l.holdEnd(now))
	})
}

// giveBack gives h back. A hold without an id is that of a store which has just counted h
// itself: then no take with a receipt has recorded that no hits were dropped since.
func (l *Compiled) giveBack(r *Result, s State, now Instant, hold Hold, h Hits) State {
	h = h.clean().countable()
	at, named := hold.At, hold.ID != [12]byte{}
	s = l.change(r, s, now, func(in State, now Instant, ban banState) (State, bool) {
		if h.N == 0 || at < l.from(&ban, now, named) {
			return in, false
		}
		if log, ok := l.algorithm.(*sliding); ok && (isHeld(in) || log.group > 1 || in[0]&logMark != 0) {
			return l.holding.subAt(in, now, at, h), true
		}
		return l.below(in).subAt(in, now, at, h), true
	})
	r.Held = false
	return s
}
