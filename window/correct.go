package window

import "github.com/weirhq/weir/internal/transition"

// set is [transition.Set]: a refund of all hits, and a record.
func (l *Compiled) set(r *Result, s State, now Instant, h Hits) State {
	var p part
	l.open(&p, s, now)
	settable := l.Measure != Distinct && l.Window.Kind != KindHeld
	if alive := l.alive(&p) > 0; alive || p.banned() || !settable {
		l.Do(transition.Record, r, s, now, Hits{}, nil)
		r.Held = alive && settable
		return s
	}
	s = l.refund(r, s, now, Hits{N: MaxHits})
	before := r.Before
	*r = Result{}
	s = l.record(r, s, now, h, nil, true)
	r.Before = before
	return s
}

// unban is [transition.Unban]. The instant of the last strike stays, from which on no hits were
// dropped; a ban cannot end earlier than just after it.
func (l *Compiled) unban(r *Result, s State, now Instant) State {
	var p part
	l.open(&p, s, now)
	before, _ := p.algo.look(p.in, p.now, Hits{})
	if p.banned() {
		since := p.ban.since()
		p.ban.end = max(p.now, since+1)
		p.ban.length = p.ban.end - since
		return l.done(r, s, &p, before)
	}
	l.answer(r, p.now, l.resetOf(p.algo, p.in), before, before, p.now)
	return s
}
