package window

// Distinct members: how many different ones are inside the window. A member
// that is already inside is free, and its date becomes now. Sliding windows let
// each member go on its own; fixed and calendar windows let all go together.
//
// A member is known by a 64-bit fingerprint that the store makes: with 10 000
// members inside, the chance that a new one looks like one of them is below
// 10^-15.
//
// State: for fixed and calendar windows the period's mark; then two words a
// member, the one used last at the end: fingerprint, and date with the number
// of its uses. A refund takes one use back and the member leaves with its last
// one; from 2047 uses on a member can no longer be refunded. Recording past the
// quota drops the members used longest ago.
const (
	memberWords = 2
	usesShift   = 53
	dateMask    = 1<<usesShift - 1
	maxUses     = 1<<(64-usesShift) - 1
)

// membersHeader is how many words stand before the members.
func (l *Compiled) membersHeader() int {
	if l.limit.Window.Kind == KindSliding {
		return 0
	}
	return 1
}

// insideMembers is the offset of the first member that is inside at now.
func (l *Compiled) insideMembers(s State, now Instant) int {
	if len(s) == 0 {
		return 0
	}
	if l.limit.Window.Kind != KindSliding {
		if now >= l.periodEnd(s) {
			return len(s)
		}
		return 1
	}
	edge := int64(now) - l.limit.Window.micros()
	lo, hi := 0, len(s)/memberWords
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); memberDate(s, mid*memberWords) <= edge {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo * memberWords
}

func memberDate(s State, i int) int64 { return int64(s[i+1] & dateMask) }

// findMember is the offset of the member from first on, or -1.
func findMember(s State, first int, member uint64) int {
	for i := len(s) - memberWords; i >= first; i -= memberWords {
		if s[i] == member {
			return i
		}
	}
	return -1
}

func (l *Compiled) lookMembers(s State, now Instant, h Hits) (used int64, fits Instant) {
	first := l.insideMembers(s, now)
	used = int64(len(s)-first) / memberWords
	switch {
	case h.N == 0 || used < l.limit.Quota || findMember(s, first, h.Member) >= 0:
		return used, now
	case l.limit.Quota == 0:
		return used, never
	case l.limit.Window.Kind != KindSliding:
		return used, l.periodEnd(s)
	}
	last := first + int(used-l.limit.Quota)*memberWords
	return used, Instant(memberDate(s, last)) + Instant(l.limit.Window.micros())
}

func (l *Compiled) addMember(s State, now Instant, member uint64) State {
	h := l.membersHeader()
	first := l.insideMembers(s, now)
	if first >= len(s) {
		s = s[:0]
		if h > 0 {
			s = append(s, l.mark(now))
		}
		first = h
	}
	uses := uint64(1)
	if i := findMember(s, first, member); i >= 0 {
		uses = min(s[i+1]>>usesShift+1, maxUses)
		s = append(s[:i], s[i+memberWords:]...)
	} else if over := (len(s)-first)/memberWords + 1 - int(l.limit.Quota); over > 0 {
		first = min(first+over*memberWords, len(s))
	}
	if first > h {
		s = append(s[:h], s[first:]...)
	}
	return append(s, member, uint64(now)|uses<<usesShift)
}

func (l *Compiled) subMember(s State, now Instant, member uint64) State {
	first := l.insideMembers(s, now)
	i := findMember(s, first, member)
	if i < 0 {
		return s
	}
	switch uses := s[i+1] >> usesShift; uses {
	case maxUses:
	case 1:
		s = append(s[:i], s[i+memberWords:]...)
		if len(s) == l.membersHeader() {
			return s[:0]
		}
	default:
		s[i+1] -= 1 << usesShift
	}
	return s
}

func (l *Compiled) expiresMembers(s State) Instant {
	if l.limit.Window.Kind != KindSliding {
		return l.periodEnd(s)
	}
	return Instant(memberDate(s, len(s)-memberWords)) + Instant(l.limit.Window.micros())
}
