package window

import "github.com/weirhq/weir/internal/transition"

// How the verbs treat a limit that holds or bans, and a state that such a limit left
// behind. A state is the words of a ban, if there was one, and what the limit below keeps.
// Checks and takes under other limits, in other states, do not need a part, and are faster
// without it; refunds and records of any limit open one.

// isWrapped reports whether s, under l, is one that such a limit left, or l is such a limit.
func (l *Compiled) isWrapped(s State) bool {
	return l.wrapped || len(s) > 0 && s[0] >= heldMark && (!l.anyWord || l.isBan(s))
}

// below returns the algorithm of the limit below bans for the state in.
func (l *Compiled) below(in State) algorithm {
	if l.holding != nil && (l.Hold > 0 || isHeld(in)) {
		return l.holding
	}
	return l.algorithm
}

// part is a state at an instant.
type part struct {
	ban  banState
	in   State
	algo algorithm // of in
	now  Instant
	bare bool // the state has no words of a ban
}

// open sets p, which is zero, to the parts of s at now, or at the latest instant that s
// remembers. A state with holds, a ban or a mark that has expired is an empty one, and under a
// limit without bans no strikes are remembered.
func (l *Compiled) open(p *part, s State, now Instant) {
	if !l.isWrapped(s) {
		p.in, p.algo, p.now, p.bare = s, l.algorithm, l.instantFor(s, now), true
		return
	}
	p.ban, p.in = l.splitBan(s)
	p.bare = len(p.in) == len(s)
	p.algo = l.below(p.in)
	p.now = min(max(now, 0), lastInstant)
	if p.ban.strikes > 0 && l.Ban.For > 0 {
		p.now = max(p.now, p.ban.since())
	}
	if len(p.in) > 0 {
		p.now = max(p.now, p.algo.seen(p.in))
		if p.algo.expires(p.in) <= p.now {
			p.in = p.in[:0]
			p.algo = l.below(p.in)
		}
	}
	if p.ban.strikes > 0 && l.Ban.For == 0 {
		p.ban = p.ban.forgotten(p.now)
	}
	if len(p.in) == 0 && p.ban.left(p.now, &l.Ban) == 0 && p.ban.end <= p.now {
		p.ban = banState{}
	}
}

// markFrom records that no hits are dropped from now on, for a take with a receipt.
func (l *Compiled) markFrom(p *part, id [12]byte) {
	if l.undated && id != [12]byte{} && p.ban == (banState{}) {
		p.ban = markedAt(p.now)
	}
}

// banned reports whether the key is banned.
func (p *part) banned() bool { return p.ban.strikes > 0 && p.ban.end > p.now }

// answer fills in r, which is empty, where the key is not banned. expires is when the
// state does, and the hits in question fit from fits on. It fills in the caller's result
// because copies of a Result take time.
func (l *Compiled) answer(r *Result, now, expires Instant, before, used int64, fits Instant) {
	r.Quota, r.Used, r.Before, r.Remaining = l.Capacity(), used, before, Unlimited
	if r.Quota != Unlimited {
		r.Remaining = max(0, r.Quota-used)
	}
	switch {
	case fits == never:
		r.RetryAfter = Never
	case fits > now:
		r.RetryAfter = fits.Sub(now)
	default:
		r.Allowed = true
	}
	switch {
	case expires == forever:
		r.ResetAfter = Never
	case expires > now:
		r.ResetAfter = expires.Sub(now)
	}
}

// noQuestion is the hits of answerBanned for a verb that asks for no hits.
const noQuestion = -1

// answerBanned fills in r, which is empty, where the key is banned. It uses what is
// held, and nothing remains. It denies n hits, also 0 of them, but not noQuestion.
func (l *Compiled) answerBanned(r *Result, p *part, n int64) {
	r.Quota, r.Banned, r.ResetAfter = l.Capacity(), true, p.ban.end.Sub(p.now)
	fits := p.ban.end
	if len(p.in) > 0 { // holds, so the limit does not count members
		r.Used, fits = p.algo.look(p.in, p.now, Hits{N: max(n, 0)})
	} else if l.tooMany(n) {
		fits = never
	}
	switch {
	case n == noQuestion:
		r.Allowed = true
	case fits == never:
		r.RetryAfter = Never
	default: // what is held can deny for longer than the ban
		r.RetryAfter = max(fits, p.ban.end).Sub(p.now)
	}
}

// tooMany reports whether n hits never fit.
func (l *Compiled) tooMany(n int64) bool {
	_, fits := l.algorithm.look(nil, 0, Hits{N: max(n, 0)})
	return fits == never
}

// askWrapped is ask with holds and bans: a take under the hold id if that is not nil. It returns
// the state as it was unless it counts h or bans.
func (l *Compiled) askWrapped(t transition.Transition, r *Result, s State, now Instant, h Hits, id *[12]byte) State {
	*r, h = Result{}, h.clean()
	var p part
	if l.open(&p, s, now); p.banned() {
		l.answerBanned(r, &p, h.N)
		return s
	}
	before, fits := p.algo.look(p.in, p.now, h)
	denied := fits == never || fits > p.now
	switch {
	case t != transition.Look && denied && h.N > 0 && l.Ban.For > 0:
		return l.strike(r, s, &p, before, h.N)
	case t == transition.Look || denied || h.N == 0:
		l.answer(r, p.now, l.resetOf(p.algo, p.in), before, before, fits)
		return s
	}
	var hold *Hold
	if id != nil {
		hold = &Hold{ID: *id, At: p.now, End: l.holdEnd(p.now)}
	}
	return l.count(r, s, &p, h, hold, before)
}

// count counts h, at least one hit, in p. They are held as hold if that is not nil, takes
// under the limit hold, the hold is not over, and there is room for one more. It fills in r,
// which is empty, and returns the state.
func (l *Compiled) count(r *Result, s State, p *part, h Hits, hold *Hold, before int64) State {
	h = h.countable()
	if w := l.holder(p.in); w != nil && hold != nil && l.HoldLength() > 0 && hold.End > p.now {
		own := *hold
		own.At = min(own.At, p.now)
		p.in, r.Held = w.hold(p.in, p.now, h.N, own)
	}
	if !r.Held {
		if p.in = p.algo.add(p.in, p.now, h); hold != nil {
			l.markFrom(p, hold.ID)
		}
	}
	return l.done(r, s, p, before)
}

// passes reports whether a record of h, which are held or not, passes the quota. The
// number of holds does not matter.
func (l *Compiled) passes(p *part, h Hits, held bool) bool {
	if w := l.holder(p.in); w != nil {
		return w.over(p.in, p.now, h.N, held)
	}
	_, fits := p.algo.look(p.in, p.now, h)
	return fits == never || fits > p.now
}

// holder returns how the limit below bans holds in the state in, or nil when it
// cannot.
func (l *Compiled) holder(in State) holder {
	if l.holding != nil {
		return l.holding
	}
	w, _ := l.algorithm.(holder)
	return w
}

// done fills in r, which is empty but for Held, and returns the state, after
// p.in was changed.
func (l *Compiled) done(r *Result, s State, p *part, before int64) State {
	p.algo = l.below(p.in)
	if p.banned() {
		l.answerBanned(r, p, noQuestion)
		r.Before = before
	} else {
		used, _ := p.algo.look(p.in, p.now, Hits{})
		l.answer(r, p.now, l.resetOf(p.algo, p.in), before, used, p.now)
	}
	if p.bare && p.ban == (banState{}) {
		return p.in
	}
	return l.join(s, p)
}

// strike bans a key whose window has used so much, because of n hits. Of what the
// key has counted only the holds that are alive stay: their actions go on.
func (l *Compiled) strike(r *Result, s State, p *part, before, n int64) State {
	p.ban = p.ban.strike(p.now, &l.Ban)
	if w := l.holder(p.in); w != nil {
		p.in = w.bare(p.in, p.now)
	} else {
		p.in = p.in[:0]
	}
	p.algo = l.below(p.in)
	l.answerBanned(r, p, n)
	r.Before, r.Struck = before, true
	return p.ban.write(s, p.in)
}

// change runs f, which ends or renews a hold, or gives hits back, on the state
// below bans, and fills in r, which is empty. It changes nothing when f reports false. ban is
// what the state remembers of bans.
func (l *Compiled) change(r *Result, s State, now Instant, f func(in State, now Instant, ban banState) (State, bool)) State {
	var p part
	l.open(&p, s, now)
	before, _ := p.algo.look(p.in, p.now, Hits{})
	if len(p.in) > 0 {
		p.in, r.Held = f(p.in, p.now, p.ban)
	}
	switch {
	case r.Held:
	case p.banned():
		l.answerBanned(r, &p, noQuestion)
		return s
	default:
		l.answer(r, p.now, l.resetOf(p.algo, p.in), before, before, p.now)
		return s
	}
	return l.done(r, s, &p, before)
}

func (l *Compiled) expiresWrapped(s State) (at Instant) {
	b, in := l.splitBan(s)
	if b.strikes > 0 && l.Ban.For == 0 {
		b = b.forgotten(0)
	}
	if len(in) > 0 {
		at = l.below(in).expires(in)
	} else if b.strikes == 0 {
		at = b.end
	}
	return max(at, b.expires(&l.Ban))
}

func (l *Compiled) wordsAfterWrapped(s State, h Hits) int {
	_, in := l.splitBan(s)
	size := len(s) - len(in) + max(l.below(in).wordsAfter(in, h), banWords)
	if l.Ban.For > 0 && l.holder(in) != nil { // a strike keeps the holds
		size = max(size, banWords+len(in))
	}
	return size
}

// tally writes into r how many holds are alive, as Used, and whether the key is banned.
func (l *Compiled) tally(r *Result, s State, now Instant) {
	var p part
	l.open(&p, s, now)
	r.Used, r.Banned = int64(l.alive(&p)), p.banned()
}

// alive returns how many holds of a key are alive.
func (l *Compiled) alive(p *part) int {
	if w := l.holder(p.in); w != nil && len(p.in) > 0 {
		return w.alive(p.in, p.now)
	}
	return 0
}
