package window

// TakeHold is like Take, and the hits are held as the hold id. They count in full
// until the hold is settled or cancelled, or [Limit.Hold] after the take or its
// last renewal. Held in the result reports whether they are held. Under a limit
// whose takes do not hold, TakeHold is Take.
func (l *Compiled) TakeHold(s State, now Instant, h Hits, id HoldID) (next State, r Result) {
	if !l.Holds() || id.IsZero() {
		return l.Take(s, now, h)
	}
	next = l.takeAround(&r, s, now, h.clean(), &id)
	return next, r
}

// RecordHold is like Record, and the hits are held as hold, even past the quota. If
// the hold is over, or if the key has its highest number of holds, the hits are
// recorded without a hold. A hold that the key has already is recorded again.
func (l *Compiled) RecordHold(s State, now Instant, h Hits, hold Hold) (next State, r Result) {
	if !l.Holds() || hold.ID.IsZero() {
		return l.Record(s, now, h)
	}
	next = l.recordAround(&r, s, now, h.clean(), &hold, false)
	return next, r
}

// RecordQuietly is like RecordHold, and like Record if hold is zero, but never a
// strike.
func (l *Compiled) RecordQuietly(s State, now Instant, h Hits, hold Hold) (next State, r Result) {
	if !l.isAround(s) { // nothing is a strike
		return l.RecordHold(s, now, h, hold)
	}
	at := &hold
	if hold.ID.IsZero() {
		at = nil
	}
	next = l.recordAround(&r, s, now, h.clean(), at, true)
	return next, r
}

// RecordDenied counts the hits of a take that was denied, by this limit or by
// another one: it is Record, but never a strike. While the key is banned it moves
// the end of the ban to its length from now.
func (l *Compiled) RecordDenied(s State, now Instant, h Hits) (next State, r Result) {
	if !l.isAround(s) {
		return l.Record(s, now, h)
	}
	next = l.deniedAround(&r, s, now, h.clean())
	return next, r
}

// Settle ends the hold id. Its n hits, which can be more than were held, become
// final: in a bucket now, in other windows at the instant of the take. [AsHeld]
// means the number of hits that were held. In a [Held] window nothing becomes final.
// Held in the result reports whether the hold was found; if not, s stays as it is.
func (l *Compiled) Settle(s State, now Instant, id HoldID, n int64) (next State, r Result) {
	if n < 0 {
		n = AsHeld
	}
	return l.endHold(s, now, id, n)
}

// Cancel ends the hold id as if the take had not happened. Held in the result
// reports whether the hold was found; if not, s stays as it is.
func (l *Compiled) Cancel(s State, now Instant, id HoldID) (next State, r Result) {
	return l.endHold(s, now, id, 0)
}

func (l *Compiled) endHold(s State, now Instant, id HoldID, n int64) (State, Result) {
	return l.change(s, now, func(in State, now, _ Instant) (State, bool) {
		if w := l.holder(in); w != nil {
			return w.end(in, now, id, n)
		}
		return in, false
	})
}

// Renew moves the end of the hold id to [Compiled.HoldLength] after now. Held in
// the result reports whether the hold was found; if not, s stays as it is. Under a
// limit whose takes no longer hold, s stays as it is, too.
func (l *Compiled) Renew(s State, now Instant, id HoldID) (next State, r Result) {
	return l.change(s, now, func(in State, now, _ Instant) (State, bool) {
		w := l.holder(in)
		if w == nil || !l.Holds() {
			return in, false
		}
		return w.renew(in, now, id, min(now+l.limit.holdLength(), lastInstant))
	})
}

// GiveBack gives back the hits of an admitted take at the instant at, which was
// counted without a hold. It gives back only hits that are certainly still counted:
//
//   - in a sliding window those of that instant, in cells those of its cell
//   - in a fixed or calendar window all of them, if it is still the same window
//   - in a bucket those that have not drained since
//   - a member, if it was not used since
func (l *Compiled) GiveBack(s State, now, at Instant, h Hits) (next State, r Result) {
	h = h.clean().countable()
	next, r = l.change(s, now, func(in State, now, since Instant) (State, bool) {
		if h.N == 0 || at <= since { // the strike has dropped the hits
			return in, false
		}
		if log, ok := l.algorithm.(*sliding); ok && (isHeld(in) || log.group > 1 || in[0]&logMark != 0) {
			return l.holding.subAt(in, now, at, h), true
		}
		return l.below(in).subAt(in, now, at, h), true
	})
	r.Held = false
	return next, r
}

// Alive returns the number of holds in s that are alive at now.
func (l *Compiled) Alive(s State, now Instant) int {
	p := l.open(s, now)
	if w := l.holder(p.in); w != nil {
		return w.alive(p.in, p.now)
	}
	return 0
}
