package window

// pairLog is the sliding window of a key that has holds: hits that are settled
// count at the instant of their take, so they have to go between others. Each
// pair is a date and the hits of that date. Above the precision the pairs are
// bounded as the groups of a sliding window are: when there are more than two for
// each unit of precision, neighbours join under the newer date where together
// they are at most a group (see tighten). So exact ≤ used ≤ exact+g-1 holds here too, or exact+g
// where a cancel has taken the newest hit of a group, and older hits have joined the others.
//
// Hits that are recorded past the quota, or settled at more than was held, make older ones go to the excess, as
// in a sliding window. What a hold held was admitted, so it counts beside what another limit has counted under a
// larger quota.
//
// State: the hits of all pairs, the excess, then the pairs, oldest first.
type pairLog struct{ sliding }

const (
	pairHeader = 2
	pairWords  = 2
)

// convert returns s, a state of the sliding window, as a pairLog.
func (w *pairLog) convert(s State) State {
	g := readLog(s)
	out := make(State, pairHeader, pairHeader+pairWords*(len(g.dates)+1))
	out[0], out[1] = uint64(min(g.total(), MaxHits)), uint64(g.excess)
	for i, date := range g.dates {
		n := uint64(g.group)
		if i == len(g.dates)-1 {
			n = uint64(g.fill)
		}
		if k := len(out); k > pairHeader && out[k-2] == date {
			out[k-1] += n
		} else {
			out = append(out, date, n)
		}
	}
	if over := g.total() - MaxHits; over > 0 { // less than a group: the oldest pair has more
		out[pairHeader+1] -= uint64(over)
	}
	return out
}

// withoutHolds returns nil for a log without pairs, and otherwise s: a pairLog
// stays one until it is empty.
func (w *pairLog) withoutHolds(s State) (State, bool) { return s, len(s) <= pairHeader }

// inside returns the offset of the first pair inside the window at now, and the
// hits from there on.
func (w *pairLog) inside(s State, now Instant) (first int, used int64) {
	if len(s) <= pairHeader {
		return len(s), 0
	}
	used = int64(s[0])
	for first = pairHeader; first < len(s) && Instant(s[first]) <= now-Instant(w.length); first += pairWords {
		used -= int64(s[first+1])
	}
	return first, used
}

func (w *pairLog) look(s State, now Instant, h Hits) (used int64, fits Instant) {
	first, used := w.inside(s, now)
	switch {
	case h.N == 0:
		return used, now
	case h.N > w.quota:
		return used, never
	case used <= w.quota-h.N:
		return used, now
	}
	over := used + h.N - w.quota
	for i := first; i < len(s); i += pairWords {
		if over -= int64(s[i+1]); over <= 0 {
			return used, Instant(s[i]) + Instant(w.length)
		}
	}
	return used, never // not reached: without its pairs the window is empty
}

// history returns the pairs.
func (w *pairLog) history(s State, now Instant, _ int64) (cells []Cell, cut bool) {
	first, _ := w.inside(s, now)
	for i := first; i < len(s); i += pairWords {
		cells = dated(cells, Instant(s[i]), int64(s[i+1]))
	}
	return cells, false
}

func (w *pairLog) add(s State, now Instant, h Hits) State {
	s = w.expire(s, now)
	before := total(s)
	return w.forget(w.addAt(s, now, now, now, h.N), before)
}

// open returns s: hits that are held date nothing.
func (w *pairLog) open(s State, _ Instant) State { return s }

func (w *pairLog) empty(s State) State { return s[:0] }

// addAt counts n hits at an earlier instant, and forgets none.
func (w *pairLog) addAt(s State, now, at, _ Instant, n int64) State {
	s = w.expire(s, now)
	if at+Instant(w.length) <= now {
		return s
	}
	if len(s) == 0 {
		s = append(s, 0, 0)
	}
	n = min(n, MaxHits-int64(s[0]))
	s[0] += uint64(n)
	i := len(s)
	for i > pairHeader && Instant(s[i-pairWords]) > at {
		i -= pairWords
	}
	if i > pairHeader && Instant(s[i-pairWords]) == at {
		s[i-1] += uint64(n)
	} else {
		s = append(s, 0, 0)
		copy(s[i+pairWords:], s[i:])
		s[i], s[i+1] = uint64(at), uint64(n)
	}
	return s
}

// expire drops the pairs that have left the window.
func (w *pairLog) expire(s State, now Instant) State {
	first, used := w.inside(s, now)
	switch {
	case first >= len(s):
		return s[:0]
	case first > pairHeader:
		s[0], s[1] = uint64(used), 0
		s = append(s[:pairHeader], s[first:]...)
	}
	return s
}

// total returns the hits of all pairs.
func total(s State) int64 {
	if len(s) == 0 {
		return 0
	}
	return int64(s[0])
}

// forget moves pairs past w.most to the excess, the oldest first, as long as
// what stays fills it. Where the log had more hits before, as many stay: see [sliding.past].
func (w *pairLog) forget(s State, before int64) State {
	first, most := pairHeader, max(w.most, before)
	for len(s)-first > pairWords && total(s) > most {
		gone := int64(s[first+1])
		if over := total(s) - most; gone > over {
			if before <= w.most {
				break
			}
			gone = over
		}
		s[0], s[1], s[first+1] = s[0]-uint64(gone), uint64(addHits(int64(s[1]), gone)), s[first+1]-uint64(gone)
		if s[first+1] == 0 {
			first += pairWords
		}
	}
	if first > pairHeader {
		s = append(s[:pairHeader], s[first:]...)
	}
	return s
}

func (w *pairLog) sub(s State, now, at Instant, h Hits) State {
	s = w.expire(s, now)
	if len(s) == 0 {
		return s
	}
	n := h.N
	if at != anytime {
		return w.subAt(s, now, at, n)
	}
	eaten := min(n, int64(s[1]))
	s[1] -= uint64(eaten)
	n = min(n-eaten, int64(s[0]))
	s[0] -= uint64(n)
	for n > 0 {
		last := len(s) - 1
		part := min(n, int64(s[last]))
		s[last] -= uint64(part)
		n -= part
		if s[last] == 0 {
			s = s[:last-1]
		}
	}
	return w.orEmpty(s)
}

// subAt gives back hits of a take, those past the quota first: then its hits stand for those that were dropped.
// Without groups their date tells which they are. Groups date them later, so it gives back those with the first
// dates from at on, and the caller knows that as many are there. No hit is dated between at and these, so that no
// span ever counts fewer hits than it has, and none counts more hits of others than before.
func (w *pairLog) subAt(s State, now, at Instant, n int64) State {
	i := pairHeader
	for i < len(s) && Instant(s[i]) < at {
		i += pairWords
	}
	exact := w.group == 1
	if i == len(s) || exact && Instant(s[i]) > at || at <= now-Instant(w.length) { // a group leaves later than its hits
		return s
	}
	if exact {
		n = min(n, int64(s[i+1]))
	}
	eaten := min(uint64(n), s[1])
	s[1] -= eaten
	for left := uint64(n) - eaten; left > 0 && i < len(s); {
		part := min(left, s[i+1])
		left -= part
		s[0], s[i+1] = s[0]-part, s[i+1]-part
		if s[i+1] == 0 {
			s = append(s[:i], s[i+pairWords:]...)
		}
	}
	return w.orEmpty(s)
}

func (w *pairLog) orEmpty(s State) State {
	if len(s) <= pairHeader {
		return s[:0]
	}
	return s
}

// tighten joins neighbours when there are too many pairs. A pair that was joined
// has hits that are older than its date. So that no other hits are ever dated
// between those, pairs do not join across the instant of a hold that is alive:
// holds are the ones in list.
func (w *pairLog) tighten(s State, list []uint64) State {
	if len(s) <= w.loose() {
		return s
	}
	// A log of another limit, with a larger quota, has larger groups.
	group := max(uint64(w.group), (s[0]-1)/uint64(w.precision)+1)
	out := pairHeader // the last pair that is kept
	for i := pairHeader + pairWords; i < len(s); i += pairWords {
		if s[out+1]+s[i+1] <= group && !between(list, s[out], s[i]) {
			s[out], s[out+1] = s[i], s[out+1]+s[i+1]
			continue
		}
		out += pairWords
		s[out], s[out+1] = s[i], s[i+1]
	}
	return s[:out+pairWords]
}

// loose returns the most words that a log can have without being tightened.
func (w *pairLog) loose() int { return pairHeader + pairWords*2*int(w.precision) }

// between reports whether the instant of a hold in list is from from on and
// before to.
func between(list []uint64, from, to uint64) bool {
	for i := 0; i < len(list); i += holdWords {
		if at := list[i+1]; at >= from && at < to {
			return true
		}
	}
	return false
}

// leaves returns the instant at which hits that are dated at have left.
func (w *pairLog) leaves(_ State, at Instant) Instant { return at + Instant(w.length) }

func (w *pairLog) expires(s State) Instant {
	return Instant(s[len(s)-pairWords]) + Instant(w.length)
}

func (w *pairLog) seen(s State) Instant { return Instant(s[len(s)-pairWords]) }

func (w *pairLog) wordsAfter(s State, _ Hits) int { return max(len(s), pairHeader) + pairWords }

func (w *pairLog) maxWords() int { return pairHeader + pairWords*(2*int(w.precision)+2) }
