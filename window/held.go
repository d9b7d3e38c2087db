package window

// A held window counts what is in flight: places that are released by the take's
// receipt, or a length after the last renewal. Nothing of them remains. Hits that
// do not name a hold are not counted, and a refund gives back nothing: only the
// holder of a place releases it.
//
// State: three words for each place, the one that ends first at the front: its
// end with the high bits of its hits, the first 64 bits of its id, and the other
// 32 with the low bits of its hits. A place that has ended stays until the state
// is changed.
const (
	placeWords = 3
	placeShift = 53
	placeMask  = 1<<placeShift - 1
)

type held struct {
	quota  int64
	length Instant
	most   int // places
}

func newHeld(l *Limit) algorithm {
	return &held{quota: l.Quota, length: l.holdLength(), most: l.maxHolds()}
}

// placeEnd and placeHits return the end and the hits of the place at offset i.
func placeEnd(s State, i int) Instant { return Instant(s[i] & placeMask) }

func placeHits(s State, i int) int64 {
	return int64(s[i]>>placeShift<<32 | s[i+2]&(1<<32-1))
}

// live returns the offset of the first place that is alive at now.
func (w *held) live(s State, now Instant) int {
	if len(s) == 0 || placeEnd(s, 0) > now {
		return 0
	}
	lo, hi := 1, len(s)/placeWords
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); placeEnd(s, mid*placeWords) <= now {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo * placeWords
}

func (w *held) look(s State, now Instant, h Hits) (used int64, fits Instant) {
	first := w.live(s, now)
	for i := first; i < len(s); i += placeWords {
		used += placeHits(s, i)
	}
	if h.N == 0 {
		return used, now
	}
	if h.N > w.quota {
		return used, never
	}
	fits = now
	if (len(s)-first)/placeWords >= w.most {
		fits = placeEnd(s, first)
	}
	for i, over := first, used+h.N-w.quota; over > 0; i += placeWords {
		over -= placeHits(s, i)
		fits = max(fits, placeEnd(s, i))
	}
	return used, fits
}

// add counts nothing: hits without a hold are not in flight.
func (w *held) add(s State, _ Instant, _ Hits) State { return s }

// sub gives nothing back.
func (w *held) sub(s State, _ Instant, _ Hits) State { return s }

func (w *held) subAt(s State, _, _ Instant, _ Hits) State { return s }

// drop returns s without the places that have ended at now.
func (w *held) drop(s State, now Instant) State {
	if first := w.live(s, now); first > 0 {
		s = s[:copy(s, s[first:])]
	}
	return s
}

func (w *held) hold(s State, now Instant, n int64, h Hold) (State, bool) {
	if first := w.live(s, now); (len(s)-first)/placeWords >= w.most {
		return s, false
	}
	s = w.drop(s, now)
	high, low := h.ID.words()
	n = min(n, MostHeld)
	return w.insert(s, uint64(h.End)|uint64(n>>32)<<placeShift, high, low<<32|uint64(n&(1<<32-1))), true
}

// insert adds a place behind those that end before it or at the same instant.
func (w *held) insert(s State, end, high, low uint64) State {
	s = append(s, end, high, low)
	i := len(s) - placeWords
	for ; i > 0 && placeEnd(s, i-placeWords) > Instant(end&placeMask); i -= placeWords {
		copy(s[i:], s[i-placeWords:i])
	}
	s[i], s[i+1], s[i+2] = end, high, low
	return s
}

// find returns the offset of the place of id from first on, or -1.
func (w *held) find(s State, first int, id HoldID) int {
	high, low := id.words()
	for i := first; i < len(s); i += placeWords {
		if s[i+1] == high && s[i+2]>>32 == low {
			return i
		}
	}
	return -1
}

// end releases a place, whatever its hits cost.
func (w *held) end(s State, now Instant, id HoldID, _ int64) (State, bool) {
	i := w.find(s, w.live(s, now), id)
	if i < 0 {
		return s, false
	}
	s = append(s[:i], s[i+placeWords:]...)
	return w.drop(s, now), true
}

func (w *held) renew(s State, now Instant, id HoldID, end Instant) (State, bool) {
	i := w.find(s, w.live(s, now), id)
	if i < 0 {
		return s, false
	}
	first, high, low := s[i], s[i+1], s[i+2]
	s = append(s[:i], s[i+placeWords:]...)
	return w.insert(w.drop(s, now), uint64(end)|first&^placeMask, high, low), true
}

func (w *held) has(s State, id HoldID) bool { return w.find(s, 0, id) >= 0 }

func (w *held) alive(s State, now Instant) int { return (len(s) - w.live(s, now)) / placeWords }

func (w *held) expires(s State) Instant { return placeEnd(s, len(s)-placeWords) }

// seen returns the instant of the newest renewal.
func (w *held) seen(s State) Instant { return max(0, w.expires(s)-w.length) }

func (w *held) room(s State, _ Hits) int { return len(s) + placeWords }

func (w *held) words() int { return placeWords * (w.most + 1) }

func (w *held) history(State, Instant, int64) ([]Cell, bool) { return nil, false }
