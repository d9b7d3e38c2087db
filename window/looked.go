package window

// A take of several limits looks at all of them first, and counts where all admit the
// hits. What the look has found can save the search when the hits are counted: that
// is most of the time of states with many words. A take of one limit does the same in
// one call, [Compiled.TakeInPlace]. The laws (TestLaws, FuzzLaws, FuzzInPlaceLaws)
// compare these ways with look and add of each algorithm.

// Looked is what [Compiled.Look] has found, for [Compiled.TakeLooked].
type Looked struct {
	now   Instant // as the state sees it
	first int32   // dates or groups that have left, or the offset of the first member inside
	at    int32   // the offset of the member, or -1
	way   way
}

// way is how TakeLooked counts.
type way uint8

const (
	noWay    way = iota // Take has to count
	byLog               // a plain log, see log.go
	byGroups            // a sliding window in groups
	byPeriod            // a fixed or a calendar window
	byMember            // distinct members
)

// Look is CheckInto, and returns what it has found. A take of several limits looks at
// all of them first, and then need not look again to count.
func (l *Compiled) Look(r *Result, s State, now Instant, h Hits) (k Looked) {
	if l.isLog(s) {
		out, at := l.log.check(r, s, now, max(h.N, 0))
		return Looked{way: byLog, first: int32(out), now: at}
	}
	if k = l.ahead(r, s, now, h); k.way == noWay {
		l.CheckInto(r, s, now, h)
	}
	return k
}

// ahead is Look for hits and states that are not those of a plain log. Where it finds
// no way, it has not changed r.
func (l *Compiled) ahead(r *Result, s State, now Instant, h Hits) (k Looked) {
	if len(s) == 0 || h.N < 1 || now < 0 || now > lastInstant || l.around {
		return k
	}
	switch {
	case l.groups != nil && s[0] >= logMark && s[0] < heldMark && len(s) > logHeader:
		out, at := l.groups.checkGroups(r, s, now, h.N)
		return Looked{way: byGroups, first: int32(out), now: at}
	case l.period != nil && len(s) == periodWords && s[0] < heldMark:
		if l.period.checkRunning(r, s, now, h.N) {
			return Looked{way: byPeriod}
		}
	case l.members != nil && !l.isAround(s):
		return l.aheadMember(r, s, now, h)
	}
	return k
}

// TakeLooked counts h for a key in state s after Look, with the same arguments, has
// admitted h and returned *k. It turns r, the answer of Look, into that of Take. It
// reports false, and has not changed s and r, where Take has to count instead: in some
// kinds of states, and where the next state may not fit in the capacity of s.
func (l *Compiled) TakeLooked(r *Result, s State, h Hits, k *Looked) (next State, ok bool) {
	switch k.way {
	case byLog:
		if h.N < 1 || len(s)-int(k.first)+int(h.N) > cap(s) {
			return s, false
		}
		r.Used += h.N
		r.Remaining -= h.N
		r.ResetAfter = Instant(l.log.length).length()
		return renew(s, int(k.first), int(h.N), k.now), true
	case byGroups:
		if next, ok = l.groups.takeGroups(s, int(k.first), h.N, k.now); !ok {
			return s, false
		}
		r.ResetAfter = Instant(l.groups.length).length()
	case byPeriod:
		s[1] += uint64(h.N)
		next = s
	case byMember:
		if next, ok = l.members.take(s, *k, h.Member); !ok {
			return s, false
		}
		if l.members.period == nil {
			r.ResetAfter = Instant(l.members.length).length()
		}
		if k.at >= 0 {
			return next, true
		}
		h.N = 1
	default:
		return s, false
	}
	r.Used += h.N
	r.Remaining -= h.N
	return next, true
}

// takeAhead is TakeInPlace where ahead finds a way.
func (l *Compiled) takeAhead(r *Result, s State, now Instant, h Hits) (next State, ok bool) {
	k := l.ahead(r, s, now, h)
	if k.way == noWay || !r.Allowed {
		return s, k.way != noWay
	}
	return l.TakeLooked(r, s, h, &k)
}

// aheadMember looks at members, of which some are inside.
func (l *Compiled) aheadMember(r *Result, s State, now Instant, h Hits) (k Looked) {
	m := l.members
	now = max(now, m.seen(s))
	first := m.inside(s, now)
	if first >= len(s) {
		return k
	}
	k = Looked{way: byMember, first: int32(first), at: int32(findMember(s, first, h.Member)), now: now}
	used := int64(len(s)-first) / memberWords
	fits := now
	if k.at < 0 && used >= m.quota {
		fits = m.fits(s, first, used)
	}
	l.result(r, s, now, used, used, fits)
	return k
}
