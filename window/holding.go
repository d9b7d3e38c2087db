package window

// Holding: a limit whose takes can hold. What is held counts in full until the
// hold ends. Then what it cost counts as if it had been taken at the instant of
// the take (see backdating). A hold that ends without having been settled costs what
// was held, or nothing.
//
// A limit without [Limit.Hold] counts in the same way in a state with holds,
// which a limit with one left behind, until the state has expired. It only makes
// no holds.
//
// State: as of the kind where nothing is held. Otherwise a mark with the number
// of holds; what they hold; the latest instant at which the state was changed;
// the latest instant of a take whose hold is kept when it ends, plus 1, or 0; the
// state of the hits that are final (see backdating), and the holds, the one that ends
// first at the front. A hold that has ended stays until the state is changed. In
// sliding windows the state keeps this form, also without holds, until all its
// hits have left.
type holding struct {
	algorithm // of the kind, for states where nothing is held
	base      backdating
	length    Instant // of a hold; 0: takes do not hold
	keep      uint64  // keepFlag, or 0 to release
	most      int     // holds
	capacity  int64
	bucket    *bucket     // the kind, if it is one
	log       *pairLog    // base, in a sliding window
	periods   *span       // of the kind, if it has periods, which takes that hold begin
	kept      *keptPeriod // the kind, if it keeps closed periods
}

const (
	// A state that begins with a word from heldMark on is one with holds or bans:
	// no kind begins a state with such a word, but for members, see isWrapped.
	heldMark = 3 << 62
	banMark  = 7 << 61

	holdHeader = 4

	// A hold has its end, the instant of its take, its hits with a flag that is
	// set when they are kept at the end, and its id. The instant of a reservation is
	// its end: see reserve.go.
	holdWords = 5
	keepFlag  = 1 << 63
)

func newHolding(l *Limit, a algorithm) holder {
	base := backdatingOf(a)
	if base == nil {
		return nil
	}
	w := &holding{
		algorithm: a, base: base, length: Instant(l.HoldLength().Microseconds()), most: l.maxHolds(), capacity: l.Capacity(),
	}
	w.bucket, _ = a.(*bucket)
	w.log, _ = base.(*pairLog)
	if p, ok := a.(*period); ok {
		w.periods = &p.span
	}
	if w.kept, _ = a.(*keptPeriod); w.kept != nil {
		w.periods = &w.kept.span
	}
	if !l.Release {
		w.keep = keepFlag
	}
	return w
}

// isHeld reports whether s has the form of a state with holds.
func isHeld(s State) bool { return len(s) > 0 && s[0] >= heldMark && s[0] < banMark }

// holdState is the parts of a state with holds.
type holdState struct {
	base State
	list []uint64
	sum  int64 // what list holds
}

func readHolds(s State) holdState {
	if !isHeld(s) {
		return holdState{base: s}
	}
	n := len(s) - holdWords*int(s[0]&^heldMark)
	return holdState{s[holdHeader:n:n], s[n:], int64(s[1])}
}

// ended returns the offset of the first hold that is alive at now.
func (v *holdState) ended(now Instant) (i int) {
	for i < len(v.list) && Instant(v.list[i]) <= now {
		i += holdWords
	}
	return i
}

// used returns how much is used at t.
func (w *holding) used(v *holdState, t Instant) int64 {
	if w.bucket != nil {
		used, _ := w.level(v, t, 0)
		return used
	}
	used, _ := w.base.look(v.base, t, Hits{})
	return min(used+w.extra(v, t), MaxHits)
}

// fits reports whether n hits fit at t.
func (w *holding) fits(v *holdState, t Instant, n int64) bool {
	n = min(n, MaxHits)
	if w.bucket != nil {
		_, fits := w.level(v, t, n)
		return fits
	}
	_, at := w.base.look(v.base, t, Hits{N: n + w.extra(v, t)})
	return at != never && at <= t
}

// extra returns how many hits count at t besides those that are final: they are
// held, or were held and are kept.
func (w *holding) extra(v *holdState, t Instant) int64 {
	n := v.sum
	for i := 0; i < len(v.list) && Instant(v.list[i]) <= t; i += holdWords {
		if hits := v.list[i+2]; hits&keepFlag == 0 || w.base.leaves(v.base, Instant(v.list[i+1])) <= t {
			n -= int64(hits &^ keepFlag)
		}
	}
	return n
}

// level returns how much of a bucket is used at t, and whether n hits fit.
func (w *holding) level(v *holdState, t Instant, n int64) (used int64, fits bool) {
	var room [bucketWords]uint64
	b, held := w.drained(room[:0], v, t)
	used, _ = w.bucket.look(b, t, Hits{})
	_, at := w.bucket.look(b, t, Hits{N: n + held})
	return min(used+held, w.capacity), at != never && at <= t
}

// drained returns the state of a bucket in which what has ended at t is final,
// and the hits that are held then. The state is in room.
func (w *holding) drained(room State, v *holdState, t Instant) (b State, held int64) {
	b, held = append(room, v.base...), v.sum
	for i := 0; i < len(v.list) && Instant(v.list[i]) <= t; i += holdWords {
		hits := v.list[i+2]
		held -= int64(hits &^ keepFlag)
		if hits&keepFlag != 0 {
			b = w.bucket.add(b, Instant(v.list[i]), Hits{N: int64(hits &^ keepFlag)})
		}
	}
	return b, held
}

func (w *holding) look(s State, now Instant, h Hits) (used int64, fits Instant) {
	if !isHeld(s) {
		return w.algorithm.look(s, now, h)
	}
	v := readHolds(s)
	if used = w.used(&v, now); h.N == 0 || w.capacity == Unlimited {
		return used, now
	}
	if h.N > w.capacity {
		return used, never
	}
	fits = now
	if !w.fits(&v, now, h.N) {
		if fits = w.waits(s, &v, now, h.N); fits == never {
			return used, never
		}
	}
	if first := v.ended(now); w.length > 0 && (len(v.list)-first)/holdWords >= w.most {
		fits = max(fits, Instant(v.list[first]))
	}
	return used, fits
}

// waits returns the instant from which n hits, which do not fit at now, fit if no
// hold is settled. What fits once goes on fitting, so it bisects.
func (w *holding) waits(s State, v *holdState, now Instant, n int64) Instant {
	lo, hi := now, w.expires(s)
	if hi == forever && len(v.list) > 0 {
		hi = Instant(v.list[len(v.list)-holdWords]) // nothing leaves later
	}
	if hi <= now || !w.fits(v, hi, n) {
		return never
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; w.fits(v, mid, n) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}
