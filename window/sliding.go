package window

// A sliding window is a log of instants, bounded by the quota. Up to the
// precision it is exact. Above it hits are kept in groups of
// g = ⌈quota/precision⌉. Each group is dated by its newest hit, and only the
// newest group is partly filled. A group leaves when its newest hit does, so
// only the group at the window's edge can hold hits that are outside:
// exact ≤ used ≤ exact+g-1, whatever the traffic. Nothing is ever admitted
// over the quota. At most g-1 hits are denied early, which by default is less
// than 1 % of the quota. A key that is counted under several quotas has the groups
// of the largest one (see [Limit.Highest]). If another limit has made groups that are
// less than twice as large, they stay, and whole groups join if they are less than half
// as large, because two limits that take turns would otherwise date the hits later and
// later.
//
// The idea is that of equi-depth histograms: the error is bounded in hits.
// Cells of time bound the error in time, which can be a whole burst of hits.
//
// State: the groups' dates, oldest first. Where groups are larger than one
// hit, or hits were recorded past the quota, three words stand before them:
// the group size with the top bit set, the fill of the newest group, and the
// excess. The excess is the number of hits that were recorded past the quota
// and are older than the oldest group. A refund takes from the excess before it
// frees quota. The excess is forgotten with the oldest group.
const (
	logHeader = 3
	logMark   = 1 << 63
)

// hitLog is the parts of a sliding state.
type hitLog struct {
	group  int64    // hits in a full group
	fill   int64    // hits in the newest group
	excess int64    // hits recorded past the quota, older than all groups
	dates  []uint64 // of the groups' newest hits, oldest first
}

func readLog(s State) hitLog {
	if len(s) > logHeader && s[0]&logMark != 0 {
		return hitLog{int64(s[0] &^ logMark), int64(s[1]), int64(s[2]), s[logHeader:]}
	}
	return hitLog{1, 1, 0, s}
}

// header returns the number of words before the dates.
func (g *hitLog) header() int {
	if g.group > 1 || g.excess > 0 {
		return logHeader
	}
	return 0
}

// total returns the number of hits in the groups. It can pass MaxHits by less
// than a group.
func (g *hitLog) total() int64 {
	if len(g.dates) == 0 {
		return 0
	}
	return int64(len(g.dates)-1)*g.group + g.fill
}

// expire drops the groups that have left a window of length w at now.
func (g *hitLog) expire(now Instant, w int64) {
	if n := left(g.dates, now-Instant(w)); n > 0 {
		g.dates, g.excess = g.dates[n:], 0
	}
}

// write writes the log to s, followed by added groups dated now. The log's
// dates may be part of s.
func (g *hitLog) write(s State, added int, now Instant) State {
	h, kept := g.header(), len(g.dates)
	size := h + kept + added
	if size == h {
		return s[:0]
	}
	out := s
	if size > cap(s) {
		out = make(State, size, max(size, 2*cap(s)))
	}
	out = out[:size]
	copy(out[h:], g.dates)
	for i := h + kept; i < size; i++ {
		out[i] = uint64(now)
	}
	if h > 0 {
		out[0], out[1], out[2] = uint64(g.group)|logMark, uint64(g.fill), uint64(g.excess)
	}
	return out
}

type sliding struct {
	quota     int64
	most      int64 // hits that stay when others are recorded
	length    int64 // µs
	precision int64
	group     int64 // hits in a full group
}

func newSliding(l *Limit) algorithm {
	w := &l.Window
	s := &sliding{quota: l.Quota, most: l.highest(), length: w.micros(), precision: w.precision(), group: groupOf(l)}
	if s.group > 1 { // the largest quota with groups of this size
		s.most = min(s.group*s.precision, MaxHits)
	}
	return s
}

// groupOf returns the number of hits in a full group of a sliding limit.
func groupOf(l *Limit) int64 {
	p := l.Window.precision()
	return max((l.highest()+p-1)/p, 1)
}

// precision returns the most groups of a sliding window.
func (w *Window) precision() int64 {
	if w.Precision > 0 {
		return int64(w.Precision)
	}
	return defaultPrecision
}

func (w *sliding) look(s State, now Instant, h Hits) (used int64, fits Instant) {
	g := readLog(s)
	g.expire(now, w.length)
	total := g.total()
	used = min(total, MaxHits)
	switch {
	case h.N == 0:
		return used, now
	case h.N > w.quota:
		return used, never
	case total <= w.quota-h.N:
		return used, now
	}
	return used, Instant(int64(g.dates[g.leave(total+h.N-w.quota)-1]) + w.length)
}

// leave returns how many of the oldest groups have to leave for n hits to leave. The last
// of them is perhaps not full.
func (g *hitLog) leave(n int64) int {
	return int(min((n+g.group-1)/g.group, int64(len(g.dates))))
}

func (w *sliding) add(s State, now Instant, h Hits) State {
	n := h.N
	g := readLog(s)
	g.expire(now, w.length)
	size, most := w.group, w.most
	past := w.past(&g)
	switch {
	case len(g.dates) == 0:
	case 2*g.group < size && size <= MaxHits/2: // whole groups join
		size = (size + g.group - 1) / g.group * g.group
	case g.group > size && (past || size > 1 && g.group < 2*size):
		size = g.group
	}
	if g.group != size {
		g.regroup(size)
	}
	g.group = size
	if past {
		full := max(int64(len(g.dates))-1+g.fill/size, w.precision, defaultPrecision)
		most = min(full, (MaxHits-1)/size+1) * size // no quota is above MaxHits
	}
	if k := len(g.dates); k > 0 && g.fill < size {
		part := min(n, size-g.fill)
		g.fill += part
		g.dates[k-1] = uint64(now)
		n -= part
	}
	// n is what does not fit into the newest group; it opens new ones.
	added := (n + size - 1) / size
	if added > 0 {
		g.fill = n - (added-1)*size
	}
	// The oldest groups go, as long as what stays has most hits or more.
	groups := int64(len(g.dates)) + added
	if over := (groups-1)*size + g.fill - most; over >= size {
		drop := min(over/size, groups)
		g.excess = addHits(g.excess, drop*size)
		old := min(drop, int64(len(g.dates)))
		g.dates = g.dates[old:]
		added -= drop - old
	}
	return g.write(s, int(added), now)
}

// past reports whether g has more hits than are kept: another limit has counted them, under a larger quota. A record
// then forgets none of the groups that were full, because that limit may go on counting, in another process or after
// a reload. If the other limit has another precision, each record can forget a part of a group.
func (w *sliding) past(g *hitLog) bool {
	total := g.total()
	return total >= w.most+w.group || total > w.most && g.group != w.group
}

func (w *sliding) sub(s State, now, at Instant, h Hits) State {
	n := h.N
	g := readLog(s)
	g.expire(now, w.length)
	if at != anytime {
		return w.subAt(s, now, at, n, &g)
	}
	eaten := min(n, g.excess)
	g.excess -= eaten
	n -= eaten
	switch {
	case n >= g.total():
		return s[:0]
	case n < g.fill:
		g.fill -= n
	default:
		n -= g.fill
		g.dates = g.dates[:int64(len(g.dates))-1-n/g.group]
		g.fill = g.group - n%g.group
	}
	return g.write(s, 0, now)
}

// subAt gives back hits of g, a log without groups. It gives back none of a log with groups,
// where several hits share a date. Only limits with a condition need that, because other logs
// with groups become logs of pairs first, see holding.
func (w *sliding) subAt(s State, now, at Instant, n int64, g *hitLog) State {
	end := left(g.dates, at)
	from := end
	for from > 0 && Instant(g.dates[from-1]) == at && int64(end-from) < n {
		from--
	}
	if from == end || g.group > 1 {
		return s
	}
	eaten := min(int64(end-from), g.excess) // the hits stand for those that were dropped
	g.excess -= eaten
	g.dates = append(g.dates[:from+int(eaten)], g.dates[end:]...)
	return g.write(s, 0, now)
}

func (w *sliding) expires(s State) Instant { return Instant(int64(s[len(s)-1]) + w.length) }

// seen returns the date of the newest hit.
func (w *sliding) seen(s State) Instant { return Instant(s[len(s)-1]) }

func (w *sliding) wordsAfter(s State, h Hits) int {
	n, size, most := h.N, w.group, w.maxWords()
	g := readLog(s)
	switch {
	case w.past(&g):
		return logHeader + max(len(g.dates), int(w.precision), defaultPrecision) + 1
	case len(s) > 0 && g.group != size:
		return most
	}
	room := int64(len(s))
	if size > 1 && len(s) == 0 || g.header() == 0 && room+n > w.most {
		room += logHeader // for groups, or for hits past the quota
	}
	// What does not fit into the newest group opens others.
	if len(g.dates) > 0 {
		n -= size - g.fill
	}
	switch {
	case n > size: // otherwise no division is needed
		room = addHits(room, (n+size-1)/size)
	case n > 0:
		room++
	}
	return int(min(room, int64(most)))
}

func (w *sliding) maxWords() int { return logHeader + int(min(w.most, w.precision)) + 1 }

// history returns the hits by date: a group has that of its newest hit.
func (w *sliding) history(s State, now Instant, _ int64) (cells []Cell, cut bool) {
	g := readLog(s)
	g.expire(now, w.length)
	for i, date := range g.dates {
		hits := g.group
		if i == len(g.dates)-1 {
			hits = g.fill
		}
		cells = dated(cells, Instant(date), hits)
	}
	return cells, false
}

// regroup puts the hits into groups of another size, for a state that was left
// by a limit with another precision or largest quota. Each group is dated by its newest
// hit, so that no hit gets an earlier date.
func (g *hitLog) regroup(size int64) {
	if len(g.dates) == 0 {
		return
	}
	out := make([]uint64, 0, g.total()/size+2)
	open := int64(0) // hits in the newest of out
	for i, date := range g.dates {
		hits := g.group
		if i == len(g.dates)-1 {
			hits = g.fill
		}
		for hits > 0 {
			if open == 0 {
				out = append(out, date)
			}
			part := min(hits, size-open)
			out[len(out)-1] = date
			open = (open + part) % size
			hits -= part
		}
	}
	if open == 0 {
		open = size
	}
	g.dates, g.fill, g.group = out, open, size
}
