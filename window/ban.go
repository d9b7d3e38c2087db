package window

import "time"

// Ban states for how long the keys that go over a limit are banned. A take that
// the limit denies is a strike, and so is a record past the quota. A strike bans
// the key at once. Until the ban ends, every take and check is denied, and nothing
// is counted. The strike drops all hits that are final, so that the window is empty
// after the ban. Holds that are alive stay, also during the ban: they can be
// settled, cancelled and renewed, and count as without a ban. The zero value means
// no ban.
type Ban struct {
	// For is the length of the first ban. Each further ban is Factor times as long
	// as the one before: the nth lasts For × Factor^(n-1), at most Most. Factor 0
	// means 1. Most 0 means the longer of 24 hours and For.
	For    time.Duration
	Factor int64
	Most   time.Duration

	// Forget is the time after the end of a ban after which one strike is
	// forgotten. After twice that time a second one is forgotten, and so on. 0
	// means 24 hours.
	Forget time.Duration
}

const (
	// defaultMost and defaultForget are the defaults of Ban.Most and Ban.Forget.
	defaultMost   = 24 * time.Hour
	defaultForget = 24 * time.Hour
	// maxFactor is the largest Ban.Factor.
	maxFactor = 1000
	// maxStrikes is the most strikes that a key remembers.
	maxStrikes = 100
)

// most and forget return the fields with their defaults.
func (b *Ban) most() time.Duration {
	if b.Most > 0 {
		return b.Most
	}
	return max(b.For, defaultMost)
}

func (b *Ban) forget() time.Duration {
	if b.Forget > 0 {
		return b.Forget
	}
	return defaultForget
}

// length returns how long the ban of the nth strike lasts, in µs.
func (b *Ban) length(n int64) Instant {
	d, most := Instant(b.For.Microseconds()), Instant(b.most().Microseconds())
	factor := Instant(max(b.Factor, 1))
	for ; n > 1 && d < most && factor > 1; n-- {
		if d > most/factor {
			return most
		}
		d *= factor
	}
	return min(d, most)
}

// banState is what a state remembers of bans: three words before the state of the
// wrapped limit. They are the strikes with a mark, the end of the last
// ban, and its length.
//
// A state without strikes can have these words, too, if its window is undated: end is then
// an instant from which on no hits were dropped, and length is 1. The first take with a
// receipt marks it. Otherwise a cancel could give back the hits of other takes after those of
// its own were dropped: by a strike, by a refund, or because the key was forgotten.
type banState struct {
	strikes  int64 // 0: there are none
	end      Instant
	length   Instant
	refunded bool // since the last strike, so that nothing can be marked; of an undated window
}

// banWords is odd, so that a state of members, which can begin with any word but
// has an even number of them, is never taken for one with a ban.
const banWords = 3

// refundedFlag is set beside the strikes.
const refundedFlag = 1 << 7

// isBan reports whether s, a state under l, begins with a ban.
func (l *Compiled) isBan(s State) bool {
	return len(s) >= banWords && s[0] >= banMark && (len(s)%2 == 1 || !l.anyWord)
}

// splitBan returns what s remembers of bans, and the rest of it.
func (l *Compiled) splitBan(s State) (b banState, in State) {
	if !l.isBan(s) {
		return b, s
	}
	b = banState{int64(s[0] &^ (banMark | refundedFlag)), Instant(s[1]), Instant(s[2]), s[0]&refundedFlag != 0}
	return b, s[banWords:]
}

// left returns how many strikes are not forgotten at now.
func (b *banState) left(now Instant, ban *Ban) int64 {
	if now < b.end {
		return b.strikes
	}
	return max(0, b.strikes-int64((now-b.end)/Instant(ban.forget().Microseconds())))
}

// expires returns the instant from which all strikes are forgotten.
func (b *banState) expires(ban *Ban) Instant {
	if b.strikes == 0 {
		return 0
	}
	return min(b.end+Instant(b.strikes)*Instant(ban.forget().Microseconds()), Instant(MaxHits))
}

// strike returns b after one more strike at now.
func (b *banState) strike(now Instant, ban *Ban) banState {
	n := min(b.left(now, ban)+1, maxStrikes)
	length := ban.length(n)
	return banState{strikes: n, end: min(now+length, lastInstant), length: length}
}

// write returns the state of b and of in, which is a part of s or other words. It
// uses the memory of s.
func (b *banState) write(s, in State) State {
	out := s
	if size := banWords + len(in); cap(s) < size {
		out = make(State, size)
	} else {
		out = s[:size]
	}
	copy(out[banWords:], in)
	out[0], out[1], out[2] = uint64(b.strikes)|banMark, uint64(b.end), uint64(b.length)
	if b.refunded {
		out[0] |= refundedFlag
	}
	return out
}

// since returns the instant of the last strike, or a later one.
func (b *banState) since() Instant { return b.end - b.length }

// forgotten returns what is left of b, which has strikes, when they are forgotten.
func (b *banState) forgotten(now Instant) banState {
	if b.refunded {
		return markedAt(now + 1)
	}
	return markedAt(b.since() + 1)
}

// markedAt returns the mark that no hits were dropped from an instant on.
func markedAt(at Instant) banState { return banState{end: at, length: 1} }

// from returns the first instant whose hits cannot have been dropped by now. named
// reports whether a take with a receipt has counted them.
func (l *Compiled) from(b *banState, now Instant, named bool) Instant {
	switch {
	case b.strikes > 0 && b.end > now, named && l.undated && (b.refunded || *b == banState{}):
		return forever
	case b.strikes > 0:
		return b.since() + 1
	case named: // also where a reload has made an undated window another one
		return b.end
	}
	return 0
}

// join returns the state of the parts of p, which can be parts of s. Strikes that are
// forgotten leave it, and so does a mark with an empty state.
func (l *Compiled) join(s State, p *part) State {
	b := p.ban
	if b.strikes > 0 && b.left(p.now, &l.Ban) == 0 {
		b = b.forgotten(p.now)
	}
	if b.strikes == 0 && len(p.in) == 0 && b.end <= p.now {
		b = banState{}
	}
	if b == (banState{}) {
		return append(s[:0], p.in...)
	}
	return b.write(s, p.in)
}

func bans(l *Limit) bool { return l.Ban != Ban{} }

func compileBan(c *Compiled, below func(Limit) *Compiled) {
	limit, inner := c.Limit, *c.Limit
	inner.Ban, inner.Export = Ban{}, false
	*c = *below(inner)
	c.Limit, c.log, c.wrapped = limit, nil, true
}

func validateBan(l *Limit, f *faults) {
	b := &l.Ban
	if *b == (Ban{}) {
		return
	}
	whole := func(field string, d time.Duration, least time.Duration) {
		if d < least || d > MaxLength || d%time.Microsecond != 0 {
			f.add("ban."+field, "%s: want whole microseconds, at least one and at most 100 years", d)
		}
	}
	whole("for", b.For, time.Microsecond)
	whole("most", b.Most, 0)
	whole("forget", b.Forget, 0)
	if b.Factor < 0 || b.Factor > maxFactor {
		f.add("ban.factor", "%d: want a whole number from 1 to %d", b.Factor, maxFactor)
	}
	if b.Most > 0 && b.Most < b.For {
		f.add("ban.most", "%s: want at least the length of the first ban, %s", Length(b.Most), Length(b.For))
	}
	if l.Quota == Unlimited {
		f.add("ban", "needs a limit: a counter denies nothing")
	}
}
