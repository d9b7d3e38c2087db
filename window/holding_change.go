package window

import (
	"cmp"
	"slices"
)

// How holding changes a state: begin, then changes of the two parts, then finish.

func (w *holding) add(s State, now Instant, h Hits) State {
	if !isHeld(s) && w.length == 0 {
		return w.algorithm.add(s, now, h)
	}
	s = w.begin(s, now)
	v := readHolds(s)
	s, b := growBase(s, w.base.wordsAfter(v.base, h)-len(v.base))
	return w.finish(shrinkBase(s, w.base.add(b, now, h), cap(b)), now)
}

// sub gives back hits that are final, the newest first.
func (w *holding) sub(s State, now, at Instant, h Hits) State {
	if !isHeld(s) && (at == anytime || w.log == nil) {
		return w.algorithm.sub(s, now, at, h)
	}
	s = w.begin(s, now) // a log of pairs, which can take hits out of its middle
	if v := readHolds(s); len(v.base) > 0 {
		s = shrinkBase(s, w.base.sub(v.base, now, at, h), len(v.base))
	}
	return w.finish(s, now)
}

func (w *holding) hold(s State, now Instant, n int64, h Hold) (State, bool) {
	v := readHolds(s)
	if (len(v.list)-v.ended(now))/holdWords >= w.most {
		return s, false
	}
	s = w.begin(s, now)
	if w.periods != nil {
		var b State
		s, b = growBase(s, periodWords)
		s = shrinkBase(s, w.base.open(b, now), cap(b))
	}
	n = min(n, MaxHits-int64(s[1]))
	s[0]++
	s[1] += uint64(n)
	if w.keep != 0 {
		s[3] = max(s[3], uint64(h.At)+1)
	}
	high, low := idWords(h.ID)
	s = append(s, uint64(h.End), uint64(h.At), uint64(n)|w.keep, high, low)
	readHolds(s).sink()
	return w.finish(s, now), true
}

// sink moves the last hold behind those that end before it or at the same
// instant.
func (v holdState) sink() {
	var h [holdWords]uint64
	i := len(v.list) - holdWords
	copy(h[:], v.list[i:])
	for ; i > 0 && v.list[i-holdWords] > h[0]; i -= holdWords {
		copy(v.list[i:], v.list[i-holdWords:i])
	}
	copy(v.list[i:], h[:])
}

// find returns the offset of the hold id, or -1.
func (v *holdState) find(id [12]byte) int {
	high, low := idWords(id)
	for i := 0; i < len(v.list); i += holdWords {
		if v.list[i+3] == high && v.list[i+4] == low {
			return i
		}
	}
	return -1
}

// alive reports whether i, which find returned, is a hold that is alive at now.
func (v *holdState) alive(i int, now Instant) bool { return i >= 0 && Instant(v.list[i]) > now }

func (w *holding) end(s State, now Instant, id [12]byte, n int64) (State, bool) {
	if v := readHolds(s); !v.alive(v.find(id), now) {
		return s, false
	}
	s = w.begin(s, now)
	v := readHolds(s)
	i := v.find(id)
	at, amount := Instant(v.list[i+1]), int64(v.list[i+2]&^keepFlag)
	kept := v.list[i+2]&keepFlag != 0
	if n < 0 {
		n = amount
	}
	s = s[:len(s)-len(v.list)+len(append(v.list[:i], v.list[i+holdWords:]...))]
	s[0]--
	s[1] -= uint64(amount)
	if v = readHolds(s); kept && uint64(at)+1 == s[3] {
		s[3] = v.newest()
	}
	if n > 0 {
		var b State
		s, b = growBase(s, w.base.wordsAfter(v.base, Hits{N: n})-len(v.base))
		room := cap(b)
		if w.log != nil && n > amount {
			b = w.log.expire(b, now)
			before := total(b) + amount
			b = w.log.forget(w.log.addAt(b, now, min(at, now), now, min(n, MaxHits)), before)
		} else {
			b = w.base.addAt(b, now, min(at, now), now, min(n, MaxHits))
		}
		s = shrinkBase(s, b, room)
	}
	return w.finish(s, now), true
}

// newest returns the latest instant of a take whose hold is kept, plus 1, or 0.
func (v *holdState) newest() (at uint64) {
	for i := 0; i < len(v.list); i += holdWords {
		if v.list[i+2]&keepFlag != 0 {
			at = max(at, v.list[i+1]+1)
		}
	}
	return at
}

func (w *holding) renew(s State, now Instant, id [12]byte, end Instant) (State, bool) {
	v := readHolds(s)
	if i := v.find(id); !v.alive(i, now) || v.list[i] == v.list[i+1] { // a reservation is not renewed
		return s, false
	}
	s = w.begin(s, now)
	v = readHolds(s)
	i := v.find(id)
	var h [holdWords]uint64
	copy(h[:], v.list[i:])
	copy(v.list[i:], v.list[i+holdWords:])
	h[0] = uint64(end)
	copy(v.list[len(v.list)-holdWords:], h[:])
	v.sink()
	return w.finish(s, now), true
}

// begin returns s as a state with holds, in which what has ended at now is final.
func (w *holding) begin(s State, now Instant) State {
	if !isHeld(s) {
		return w.convert(s, now)
	}
	v := readHolds(s)
	over := v.ended(now)
	if over == 0 {
		return s
	}
	// The words of a hold that has ended are room behind the base.
	b, size, lost := v.base, len(v.base), false
	for i := 0; i < over; i += holdWords {
		settled, at, hits := Instant(v.list[i]), Instant(v.list[i+1]), v.list[i+2]
		size += holdWords
		s[1] -= hits &^ keepFlag
		lost = lost || uint64(at)+1 == s[3]
		if hits&keepFlag == 0 {
			continue
		}
		if cap(b) < size && (len(b) == 0 || &b[0] == &s[holdHeader]) {
			b = s[holdHeader : holdHeader+len(b) : holdHeader+size]
		}
		b = w.base.addAt(b, now, at, settled, int64(hits&^keepFlag))
	}
	s = shrinkBase(s, b, size)
	s[0] -= uint64(over / holdWords)
	if v = readHolds(s); lost {
		s[3] = v.newest()
	}
	if len(v.list) == 0 {
		if b, ok := w.base.withoutHolds(v.base); ok && len(b) == 0 {
			s = s[:holdHeader]
		}
	}
	return s
}

// convert returns s, a state of the kind, as one with holds.
func (w *holding) convert(s State, now Instant) State {
	if len(s) == 0 {
		return append(s[:0], heldMark, 0, uint64(now), 0)
	}
	b := w.base.convert(s)
	n := len(b)
	out := s
	if size := holdHeader + n; cap(s) < size {
		out = make(State, size, size+holdWords+pairWords)
	} else {
		out = s[:size]
	}
	copy(out[holdHeader:], b)
	out[0], out[1], out[2], out[3] = heldMark, 0, uint64(now), 0
	return out
}

// finish returns s, which was changed at now, in the form that it is kept in.
func (w *holding) finish(s State, now Instant) State {
	v := readHolds(s)
	if w.log != nil && len(v.base) > 0 {
		s = shrinkBase(s, w.log.tighten(w.log.expire(v.base, now), v.list), len(v.base))
		v = readHolds(s)
	}
	s[2] = max(s[2], uint64(now))
	if len(v.list) > 0 {
		return s
	}
	if b, ok := w.base.withoutHolds(v.base); ok {
		if orZero(w.base, b) <= now {
			b = b[:0]
		}
		return s[:copy(s, b)]
	}
	return s
}

// growBase returns s with room for more words behind the state of final hits, and
// that state with this room as its capacity.
func growBase(s State, more int) (wide, base State) {
	more = max(more, 0)
	v := readHolds(s)
	n, size := len(v.base), len(s)+more
	out := s
	if size > cap(s) {
		out = make(State, size, size+holdWords)
		copy(out, s[:holdHeader+n])
	}
	out = out[:size]
	copy(out[holdHeader+n+more:], v.list)
	return out, out[holdHeader : holdHeader+n : holdHeader+n+more]
}

// shrinkBase puts base into s, where it has capacity for room words, and closes the gap.
func shrinkBase(s, base State, room int) State {
	if len(base) > room {
		grown := make(State, len(s)-room+len(base), len(s)-room+len(base)+holdWords)
		copy(grown, s[:holdHeader])
		copy(grown[holdHeader+len(base):], s[holdHeader+room:])
		s, room = grown, len(base)
	}
	copy(s[holdHeader:], base)
	if len(base) < room {
		copy(s[holdHeader+len(base):], s[holdHeader+room:])
	}
	return s[:len(s)-room+len(base)]
}

func (w *holding) over(s State, now Instant, n int64, _ bool) bool {
	if !isHeld(s) {
		_, fits := w.algorithm.look(s, now, Hits{N: n})
		return fits == never || fits > now
	}
	v := readHolds(s)
	return !w.fits(&v, now, n)
}

func (w *holding) bare(s State, now Instant) State {
	if w.alive(s, now) == 0 {
		return s[:0]
	}
	s = w.begin(s, now)
	v := readHolds(s)
	return w.finish(shrinkBase(s, w.base.empty(v.base), len(v.base)), now)
}

func (w *holding) has(s State, now Instant, id [12]byte) bool {
	v := readHolds(s)
	return v.alive(v.find(id), now)
}

func (w *holding) alive(s State, now Instant) int {
	v := readHolds(s)
	return (len(v.list) - v.ended(now)) / holdWords
}

func (w *holding) holds(s State, now Instant) (cells []Cell) {
	v := readHolds(s)
	for i := v.ended(now); i < len(v.list); i += holdWords {
		at := Instant(v.list[i+1])
		cells = append(cells, Cell{Start: at, Length: Instant(v.list[i]).Sub(at), Hits: int64(v.list[i+2] &^ keepFlag)})
	}
	return cells
}

func (w *holding) expires(s State) Instant {
	if !isHeld(s) {
		return w.algorithm.expires(s)
	}
	v := readHolds(s)
	end := Instant(0)
	if len(v.list) > 0 {
		end = Instant(v.list[len(v.list)-holdWords])
		if w.bucket != nil {
			var room [bucketWords]uint64
			b := append(room[:0], v.base...)
			if s[3] > 0 { // at the latest: as if all of them ended with the last one
				b = w.bucket.add(b, end, Hits{N: v.sum})
			}
			return max(end, orZero(w.bucket, b))
		}
	}
	last := orZero(w.base, v.base)
	if w.kept != nil && s[3] > 0 {
		return max(end, last, w.kept.until(Instant(s[3]-1)))
	}
	if s[3] > 0 && (last == 0 || w.periods == nil) { // all hits of a period leave together
		last = max(last, w.base.leaves(v.base, Instant(s[3]-1)))
	}
	return max(end, last)
}

func (w *holding) seen(s State) Instant {
	if !isHeld(s) {
		return w.algorithm.seen(s)
	}
	return Instant(s[2])
}

func (w *holding) wordsAfter(s State, h Hits) int {
	if isHeld(s) {
		v := readHolds(s)
		return len(s) - len(v.base) + w.base.wordsAfter(v.base, h) + holdWords
	}
	if len(s) == 0 {
		return holdHeader + w.base.wordsAfter(nil, h) + holdWords
	}
	if w.length == 0 {
		return w.algorithm.wordsAfter(s, h)
	}
	return holdHeader + pairHeader + pairWords*(len(s)+1) + holdWords
}

func (w *holding) maxWords() int {
	return max(w.algorithm.maxWords(), holdHeader+w.base.maxWords()+(holdWords+pairWords)*(w.most+1))
}

func (w *holding) history(s State, now Instant, used int64) (cells []Cell, cut bool) {
	if !isHeld(s) {
		return w.algorithm.history(s, now, used)
	}
	v := readHolds(s)
	if len(v.base) > 0 {
		used, _ = w.base.look(v.base, now, Hits{})
		cells, cut = w.base.history(v.base, now, used)
	}
	if w.log == nil {
		return cells, cut
	}
	// What was kept when its hold ended is not in the log before the state is changed.
	for i := range v.ended(now) / holdWords {
		at, hits := Instant(v.list[i*holdWords+1]), v.list[i*holdWords+2]
		if hits&keepFlag == 0 || w.base.leaves(v.base, at) <= now {
			continue
		}
		k, there := slices.BinarySearchFunc(cells, at, func(c Cell, at Instant) int { return cmp.Compare(c.Start, at) })
		if !there {
			cells = slices.Insert(cells, k, Cell{Start: at})
		}
		cells[k].Hits += int64(hits &^ keepFlag)
	}
	return cells, cut
}
