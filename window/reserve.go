package window

import "github.com/weirhq/weir/internal/transition"

// A reservation is a hold whose hits somebody may spend, until it ends, without asking. Each of
// them is spent before the hold ends, so what the hold cost counts from its end, or from the
// instant at which it is settled if that is earlier. Therefore the instant of such a hold is its
// end. Until then it counts in full, as every hold does. No state has hits that are dated later
// than its last change.
//
// No window of length L, from t-L to t, has more spent hits than the quota. Let g ≤ t be the
// instant of the last take or reservation that was admitted and of which hits were spent in the
// window. Hits that were spent at u in the window are of a take at u ≤ g, or of a hold that was
// made at g or before and ends at e ≥ u > t-L ≥ g-L. If e > g the hold counted in full at g, and
// otherwise what it cost counted from e, and had not left at g. So all of them counted at g, and
// together they fitted. In a fixed or calendar window a hold ends with the period, so its hits are
// spent in the period in which they count. In a bucket what is spent in (t-L, t] is held at g, or
// was added to the level in (t-L, g], in which the level lost at most the rate times L.

// CanReserve reports whether hits can be reserved under l, in package store. That needs a quota on
// hits or a sum in a window other than a [Held] one, without a condition, a ban, or takes that
// hold.
func (l *Compiled) CanReserve() bool {
	return l.holds != nil && l.Measure != Distinct && l.Quota != Unlimited && l.Window.Kind != KindHeld &&
		l.After == (After{}) && l.Ban.For == 0 && l.Hold == 0
}

// reserve implements [transition.Reserve] and [transition.CanReserve].
func (l *Compiled) reserve(r *Result, t transition.Transition, s State, now Instant, h Hits, asked *Hold) State {
	if !l.CanReserve() {
		if l.Do(transition.Look, r, s, now, Hits{}, nil); h.N > 0 {
			r.Allowed, r.RetryAfter = false, Never
		}
		return s
	}
	var p part
	l.open(&p, s, now)
	w := l.holding.(*holding)
	before, fits := p.algo.look(p.in, p.now, h)
	hold := Hold{asked.ID, p.now, min(p.now+max(asked.End-asked.At, 0), lastInstant)}
	if h.N > 0 && fits != never {
		fits = w.reserves(p.in, &hold, fits)
	}
	if h.N == 0 || fits == never || fits > p.now || t == transition.CanReserve {
		l.answer(r, p.now, l.resetOf(p.algo, p.in), before, before, fits)
		return s
	}
	asked.At, asked.End = now, now+hold.End-hold.At // the key's clock can be ahead
	hold.At = hold.End
	p.in, r.Held = w.hold(p.in, p.now, h.N, hold)
	return l.done(r, s, &p, before)
}

// reserves returns the instant from which hits that fit at an instant can be held as h, which
// begins now, and lets h end with its period.
func (w *holding) reserves(s State, h *Hold, fits Instant) Instant {
	if h.ID == ([12]byte{}) || h.End <= h.At {
		return never
	}
	v := readHolds(s)
	if w.periods != nil {
		end := w.periods.end(w.periods.mark(h.At))
		if len(v.base) > 0 && h.At < w.periods.end(v.base[0]) {
			end = w.periods.end(v.base[0])
		}
		if h.End = min(h.End, end-1); h.End <= h.At {
			fits = max(fits, end)
		}
	}
	if i := v.find(h.ID); v.alive(i, h.At) {
		fits = max(fits, Instant(v.list[i]))
	}
	if first := v.ended(h.At); (len(v.list)-first)/holdWords >= w.most {
		fits = max(fits, Instant(v.list[first]))
	}
	return fits
}
