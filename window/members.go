package window

// Distinct members: how many different ones are inside the window. A member
// that is already inside is free, and its date becomes now. In a sliding window
// each member leaves on its own. In a fixed or calendar window all leave
// together.
//
// The store identifies a member by a 64-bit fingerprint. With 10 000 members
// inside, the chance that a new one has the fingerprint of one of them is below
// 10^-15.
//
// State: for fixed and calendar windows the period's mark, then two words for
// each member: its fingerprint, and its date with the number of its uses. The
// member used last stands at the end. A refund takes one use back, and the
// member leaves with its last use. A member with 2047 uses or more can no longer
// be refunded.
//
// Recording past the largest quota drops the members used longest ago. Before the
// others then stand two words with the number of those that were dropped, and the date of
// the newest of them with no uses. Until that date has left the window, the dropped members fill
// the places that refunds make free. This can deny early, because some of them
// can have left or be inside again, and never late.
const (
	memberWords = 2
	usesShift   = 53
	dateMask    = 1<<usesShift - 1
	maxUses     = 1<<(64-usesShift) - 1
)

type members struct {
	quota  int64
	most   int64 // members that are kept: the largest quota under which the key is counted
	length int64 // µs, of a sliding window
	period *span // of a fixed or calendar window; nil: a sliding one
	header int   // words before the members
}

func membersOfSliding(l *Limit) algorithm {
	return &members{quota: l.Quota, most: l.highest(), length: l.Window.micros()}
}

func membersOfFixed(l *Limit) algorithm {
	p := spanOfFixed(&l.Window)
	return &members{quota: l.Quota, most: l.highest(), period: &p, header: 1}
}

func membersOfCalendar(l *Limit) algorithm {
	p := spanOfCalendar(&l.Window)
	return &members{quota: l.Quota, most: l.highest(), period: &p, header: 1}
}

// inside returns the offset of the first member that is inside at now.
func (m *members) inside(s State, now Instant) int {
	if len(s) == 0 {
		return 0
	}
	if m.period != nil {
		if now >= m.period.end(s[0]) {
			return len(s)
		}
		return m.header
	}
	edge := int64(now) - m.length
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

// dropped returns how many dropped members are inside, and the offset of the first member that
// is not dropped. first is what inside returns.
func (m *members) dropped(s State, first int) (n int64, rest int) {
	if first < len(s) && s[first+1]>>usesShift == 0 {
		return int64(s[first]), first + memberWords
	}
	return 0, first
}

// memberDate returns the date of the member at offset i.
func memberDate(s State, i int) int64 { return int64(s[i+1] & dateMask) }

// findMember returns the offset of the member from first on, or -1. It compares four
// members at a time, which takes half of the time where a state has many.
func findMember(s State, first int, member uint64) int {
	const four = 4 * memberWords
	i := len(s)
	for ; i-first >= four; i -= four {
		if m := s[i-four : i : i]; m[0] == member || m[2] == member || m[4] == member || m[6] == member {
			break
		}
	}
	for i -= memberWords; i >= first; i -= memberWords {
		if s[i] == member {
			return i
		}
	}
	return -1
}

// find returns the offset of the member if it is inside at now, or -1.
func (m *members) find(s State, now Instant, member uint64) int {
	_, first := m.dropped(s, m.inside(s, now))
	return findMember(s, first, member)
}

func (m *members) look(s State, now Instant, h Hits) (used int64, fits Instant) {
	dropped, first := m.dropped(s, m.inside(s, now))
	kept := int64(len(s)-first) / memberWords
	used = max(kept, min(kept+dropped, m.most))
	if h.N == 0 || used < m.quota || findMember(s, first, h.Member) >= 0 {
		return used, now
	}
	switch {
	case m.quota == 0:
		return used, never
	case m.period != nil:
		return used, m.period.end(s[0])
	}
	last := first - memberWords // the dropped ones
	if kept >= m.quota {
		last = first + int(kept-m.quota)*memberWords
	}
	return used, Instant(memberDate(s, last) + m.length)
}

func (m *members) add(s State, now Instant, h Hits) State {
	first := m.inside(s, now)
	if first >= len(s) {
		s = s[:0]
		if m.period != nil {
			s = append(s, m.period.mark(now))
		}
		first = m.header
	}
	uses := uint64(1)
	dropped, kept := m.dropped(s, first)
	if i := findMember(s, kept, h.Member); i >= 0 {
		uses = min(s[i+1]>>usesShift+1, maxUses)
		s = append(s[:i], s[i+memberWords:]...)
	} else if n := (len(s) - kept) / memberWords; n > 0 && n >= int(m.most) {
		// One makes room, and stands for all that were dropped. Others past the quota stay: another limit has counted them,
		// under a larger one, and may go on counting.
		first = kept
		s[first] = uint64(min(dropped+1, MaxEntries))
		s[first+1] &= dateMask
	}
	if first > m.header {
		s = append(s[:m.header], s[first:]...)
	}
	return append(s, h.Member, uint64(now)|uses<<usesShift)
}

// sub gives back a use of the member. If it was counted at an instant, the member must have been
// used last at that instant.
func (m *members) sub(s State, now, at Instant, h Hits) State {
	i := m.find(s, now, h.Member)
	if i < 0 || at != anytime && memberDate(s, i) != int64(at) {
		return s
	}
	switch uses := s[i+1] >> usesShift; uses {
	case maxUses:
	case 1:
		s = append(s[:i], s[i+memberWords:]...)
		if len(s) == m.header {
			return s[:0]
		}
	default:
		s[i+1] -= 1 << usesShift
	}
	return s
}

func (m *members) expires(s State) Instant {
	if m.period != nil {
		return m.period.end(s[0])
	}
	return Instant(memberDate(s, len(s)-memberWords) + m.length)
}

// seen returns when a member was used last.
func (m *members) seen(s State) Instant { return Instant(memberDate(s, len(s)-memberWords)) }

func (m *members) wordsAfter(s State, _ Hits) int {
	if len(s) > m.maxWords() { // of another limit, with a larger quota
		return len(s) + memberWords
	}
	return min(max(len(s), m.header)+memberWords, m.maxWords())
}

func (m *members) maxWords() int { return m.header + memberWords*int(max(m.most, 1)+1) }

// history returns the period, or the members by the instant at which they were used last. Those
// that were dropped and fill places leave together.
func (m *members) history(s State, now Instant, used int64) (cells []Cell, cut bool) {
	if m.period != nil {
		return m.period.cell(s[0], used), false
	}
	_, first := m.dropped(s, m.inside(s, now))
	if filled := used - int64(len(s)-first)/memberWords; filled > 0 {
		cells = dated(cells, Instant(memberDate(s, first-memberWords)), filled)
	}
	for i := first; i < len(s); i += memberWords {
		cells = dated(cells, Instant(memberDate(s, i)), 1)
	}
	return cells, false
}
