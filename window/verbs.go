package window

import (
	"time"

	"github.com/weirhq/weir/internal/transition"
)

// Check returns the answer that Take would give for h at now, but for a ban that Take
// would begin. It counts nothing: it never changes s.
func (l *Compiled) Check(s State, now Instant, h Hits) (r Result) {
	l.Do(transition.Look, &r, s, now, h, nil)
	return r
}

// Take counts h at now, for a key in state s, if l admits all of h. It returns
// the next state. If l denies h, Take returns s unchanged.
func (l *Compiled) Take(s State, now Instant, h Hits) (next State, r Result) {
	next = l.Do(transition.Take, &r, s, now, h, nil)
	return next, r
}

// Do makes the transition t of a key in state s, and writes the answer into r.
// It is for weir's own stores. hold can be nil. Held in the answer reports whether the
// hits were held, or whether the hold was found; if not, s stays as it is.
func (l *Compiled) Do(t transition.Transition, r *Result, s State, now Instant, h Hits, hold *Hold) (next State) {
	named := hold != nil && hold.ID != [12]byte{}
	if t <= transition.Take {
		if named && t != transition.Look && (l.HoldLength() > 0 || l.undated) { // the take holds the hits, or marks the state
			return l.askWrapped(t, r, s, now, h, &hold.ID)
		}
		return l.ask(t, r, s, now, h)
	}
	*r = Result{}
	switch t {
	case transition.Record, transition.RecordNoStrike:
		if !named || l.HoldLength() == 0 {
			hold = nil
		}
		return l.record(r, s, now, h, hold, t == transition.RecordNoStrike)
	case transition.RecordNow:
		if named {
			hold = &Hold{ID: hold.ID, At: now, End: now.Add(l.HoldLength())}
		} else {
			hold = nil
		}
		return l.record(r, s, now, h, hold, false)
	case transition.RecordDenied:
		return l.recordDenied(r, s, now, h)
	case transition.Tally:
		l.tally(r, s, now)
		return s
	case transition.Refund:
		return l.refund(r, s, now, h)
	case transition.Set:
		return l.set(r, s, now, h)
	case transition.Unban:
		return l.unban(r, s, now)
	}
	if hold == nil {
		hold = &Hold{}
	}
	s, *r, *hold = l.holds.end(*l, t, s, now, h, *hold)
	return s
}

// ask looks, counts or takes h, without a hold.
func (l *Compiled) ask(t transition.Transition, r *Result, s State, now Instant, h Hits) State {
	switch {
	case l.isDateLog(s):
		return l.log.ask(t, r, s, now, h.N)
	case l.isWrapped(s):
		return l.askWrapped(t, r, s, now, h, nil)
	}
	now = l.instantFor(s, now)
	before, fits := r.Before, now
	if t != transition.Count {
		h = h.clean()
		before, fits = l.algorithm.look(s, now, h)
	}
	used := before
	if t != transition.Look && h.N > 0 && fits <= now && fits != never {
		s = l.algorithm.add(s, now, h.countable())
		if used += h.N; l.recounts || h.N > MaxHits || used > MaxHits {
			used, _ = l.algorithm.look(s, now, Hits{})
		}
	}
	*r = Result{}
	l.answer(r, now, l.resetOf(l.algorithm, s), before, used, fits)
	return s
}

// Record counts h at now without asking the quota. A sliding window and a limit
// with measure [Distinct] cannot remember all hits past the quota: they forget the
// oldest first, so Used can then be lower than what was recorded.
func (l *Compiled) Record(s State, now Instant, h Hits) (next State, r Result) {
	next = l.record(&r, s, now, h, nil, false)
	return next, r
}

// record records h, under hold if that is not nil. Hits past the quota are a strike,
// unless noStrike.
func (l *Compiled) record(r *Result, s State, now Instant, h Hits, hold *Hold, noStrike bool) State {
	var p part
	if l.open(&p, s, now); p.banned() {
		l.answerBanned(r, &p, noQuestion)
		return s
	}
	h = h.clean()
	before, _ := p.algo.look(p.in, p.now, Hits{})
	if w := l.holder(p.in); h.N > 0 && w != nil && hold != nil && l.HoldLength() > 0 {
		r.Held = w.has(p.in, p.now, hold.ID)
	}
	if h.N == 0 || r.Held {
		l.answer(r, p.now, l.resetOf(p.algo, p.in), before, before, p.now)
		return s
	}
	if l.Ban.For > 0 && !noStrike && l.passes(&p, h, hold != nil) {
		return l.strike(r, s, &p, before, noQuestion)
	}
	return l.count(r, s, &p, h, hold, before)
}

// recordDenied counts the hits of a take that was denied. It moves the end of a ban.
func (l *Compiled) recordDenied(r *Result, s State, now Instant, h Hits) State {
	var p part
	if l.open(&p, s, now); !p.banned() {
		return l.record(r, s, now, h, nil, true)
	}
	if h.N > 0 {
		p.ban.end = min(p.now+p.ban.length, lastInstant)
		s = p.ban.write(s, p.in)
	}
	l.answerBanned(r, &p, noQuestion)
	return s
}

// Refund gives h back: the newest hits that are still in the window, or, with
// measure [Distinct], one use of the member. It gives back at most what the window
// holds; an N above [MaxHits] gives back all hits. A member leaves the window with
// its last use, and a member with 2047 uses or more stays until its time is over.
func (l *Compiled) Refund(s State, now Instant, h Hits) (next State, r Result) {
	next = l.refund(&r, s, now, h)
	return next, r
}

func (l *Compiled) refund(r *Result, s State, now Instant, h Hits) State {
	var p part
	l.open(&p, s, now)
	noted := p.ban != banState{}
	if h.N == All {
		p.ban = banState{}
	}
	if p.banned() {
		l.answerBanned(r, &p, noQuestion)
		return s
	}
	h = h.clean()
	before, _ := p.algo.look(p.in, p.now, Hits{})
	switch {
	case h.N == 0:
		l.answer(r, p.now, l.resetOf(p.algo, p.in), before, before, p.now)
		return s
	case len(p.in) == 0:
	case h.N > MaxHits && l.Measure != Distinct && !isHeld(p.in) && l.Window.Kind != KindHeld && !l.keeps:
		p.in = p.in[:0]
	default:
		p.in = p.algo.sub(p.in, p.now, anytime, h.countable())
	}
	switch { // whose hits were refunded cannot be told
	case p.ban.strikes > 0:
		p.ban.refunded = p.ban.refunded || l.undated
	case noted:
		p.ban = markedAt(p.now + 1)
	}
	return l.done(r, s, &p, before)
}

// Expires returns the instant from which s is as good as an empty state. It
// returns 0 for an empty state.
func (l *Compiled) Expires(s State) Instant {
	if len(s) == 0 {
		return 0
	}
	if l.isWrapped(s) {
		return l.expiresWrapped(s)
	}
	return l.algorithm.expires(s)
}

// WordsAfter returns the most words that the state can have after t has counted h. If s has
// that capacity t does not allocate, unless another limit has made s (see [State]). It
// is for weir's own stores.
func (l *Compiled) WordsAfter(t transition.Transition, s State, h Hits) int {
	h = h.clean().countable()
	switch {
	case t > transition.RecordDenied && t != transition.Settle && t != transition.Set:
		return 0
	case t <= transition.Take && l.isDateLog(s):
		if h.N > l.log.quota {
			return len(s)
		}
		return max(min(len(s)+int(h.N), int(l.log.quota)), len(s)) // a take counts no hits past the quota
	case l.isWrapped(s):
		return l.wordsAfterWrapped(s, h)
	}
	return l.algorithm.wordsAfter(s, h)
}

// never is the instant at which hits that cannot fit would fit.
const never Instant = -1 << 63

// anytime is the instant of hits to give back that are the newest.
const anytime = never

// lastInstant is the latest instant that counts as itself: a window after it
// would leave 2^53.
const lastInstant = Instant(MaxHits) - Instant(MaxLength/time.Microsecond)

// instantFor returns the instant that now counts as for a key in state s: not before
// the latest instant that s remembers, and inside what a state can keep.
func (l *Compiled) instantFor(s State, now Instant) Instant {
	now = min(max(now, 0), lastInstant)
	if len(s) == 0 {
		return now
	}
	return max(now, l.algorithm.seen(s))
}

// orZero returns a.expires(s), and 0 for an empty state.
func orZero(a algorithm, s State) Instant {
	if len(s) == 0 {
		return 0
	}
	return a.expires(s)
}

// clean returns h without negative hits.
func (h Hits) clean() Hits {
	h.N = max(h.N, 0)
	return h
}

// countable returns h with at most MaxHits hits.
func (h Hits) countable() Hits {
	h.N = min(h.N, MaxHits)
	return h
}

// addHits returns a+b, at most MaxHits.
func addHits(a, b int64) int64 { return min(a+min(b, MaxHits), MaxHits) }

// floorDiv returns a/b rounded down, for b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// holds is what limits need whose takes hold, whose states can have holds, or which keep
// closed periods. Its
// functions take no pointers, which would escape.
type holds struct {
	held func(l *Limit) algorithm           // compiles a held window
	kept func(l *Limit) algorithm           // compiles a calendar window that keeps closed periods
	wrap func(l *Limit, a algorithm) holder // adds holds to a kind; nil: it cannot hold
	end  func(l Compiled, t transition.Transition, s State, now Instant, h Hits, hold Hold) (State, Result, Hold)
}

var withHolds = holds{newHeld, newKept, newHolding, Compiled.end}

// end implements [Compiled.Do] for the verbs about an earlier take, and for a reserve, which moves
// the hold.
func (l Compiled) end(t transition.Transition, s State, now Instant, h Hits, hold Hold) (_ State, r Result, _ Hold) {
	switch t {
	case transition.Reserve, transition.CanReserve:
		s = l.reserve(&r, t, s, now, h.clean(), &hold)
	case transition.Settle:
		s = l.settle(&r, s, now, hold.ID, h.N)
	case transition.Renew:
		s = l.renew(&r, s, now, hold.ID)
	case transition.GiveBack:
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
			return l.holding.sub(in, now, at, h), true
		}
		return l.below(in).sub(in, now, at, h), true
	})
	r.Held = false
	return s
}
