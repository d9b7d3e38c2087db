package window

import "time"

// A held window counts what is in flight: places that are released by the take's
// receipt, or a length after the last renewal. Nothing of them remains. Hits that
// do not name a hold are not counted, and a refund gives back nothing: only the
// holder of a place releases it.
//
// State: two words for each place, the one that ends first at the front: its end
// with its hits, and 64 bits of its id. As soon as one place has more than 511
// hits, all places of the state have three words: the end with a flag, the bits
// of the id, and the hits. A place that has ended stays until the state is
// changed.
//
// Among n places of a key an id that none of them has is found by mistake with a
// probability of n/2^64.
type held struct {
	quota  int64
	length Instant
	most   int // places
}

const (
	narrowPlace = 2 // words
	widePlace   = 3

	placeShift = 53
	endMask    = 1<<placeShift - 1
	fewHits    = 1<<9 - 1 // the most hits of a place of two words
	wideFlag   = 1 << 62
)

func newHeld(l *Limit) algorithm {
	return &held{quota: l.Quota, length: Instant(l.Window.micros()), most: l.maxHolds()}
}

// place is one place in flight.
type place struct {
	end  Instant
	bits uint64 // of the id
	hits int64
}

// placeBits returns 64 bits of id.
func placeBits(id [12]byte) uint64 {
	high, low := idWords(id)
	return high ^ low*0x9e3779b97f4a7c15
}

// places are the places of a state.
type places struct {
	words State
	width int
}

func readPlaces(s State) places {
	if len(s) > 0 && s[0]&wideFlag != 0 {
		return places{s, widePlace}
	}
	return places{s, narrowPlace}
}

func (p *places) len() int          { return len(p.words) / p.width }
func (p *places) end(i int) Instant { return Instant(p.words[i*p.width] & endMask) }

func (p *places) hits(i int) int64 {
	if p.width == widePlace {
		return int64(p.words[i*widePlace+2])
	}
	return int64(p.words[i*narrowPlace] >> placeShift)
}

// live returns the index of the first place that is alive at now.
func (p *places) live(now Instant) int {
	lo, hi := 0, p.len()
	if hi == 0 || p.end(0) > now {
		return 0
	}
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); p.end(mid) <= now {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// used returns the hits of the places from the one numbered first on.
func (p *places) used(first int) (n int64) {
	if p.width == narrowPlace {
		for i := first * narrowPlace; i < len(p.words); i += narrowPlace {
			n += int64(p.words[i] >> placeShift)
		}
		return n
	}
	for i := first*widePlace + 2; i < len(p.words); i += widePlace {
		n += int64(p.words[i])
	}
	return n
}

// find returns the index of the place of id from first on, or -1.
func (p *places) find(first int, id [12]byte) int {
	bits := placeBits(id)
	for i := first; i < p.len(); i++ {
		if p.words[i*p.width+1] == bits {
			return i
		}
	}
	return -1
}

// cut takes place i out, and those before first.
func (p *places) cut(first, i int) place {
	out := place{p.end(i), p.words[i*p.width+1], p.hits(i)}
	p.words = append(p.words[:i*p.width], p.words[(i+1)*p.width:]...)
	p.drop(first)
	return out
}

// drop drops the places before first.
func (p *places) drop(first int) {
	if first > 0 {
		p.words = p.words[:copy(p.words, p.words[first*p.width:])]
	}
}

// insert adds a place behind those that end before it or at the same instant.
func (p *places) insert(in place) {
	if in.hits > fewHits && p.width == narrowPlace {
		p.widen()
	}
	if len(p.words) == 0 && in.hits <= fewHits {
		p.width = narrowPlace
	}
	word := uint64(in.end) | uint64(in.hits)<<placeShift
	if p.width == widePlace {
		word = uint64(in.end) | wideFlag
		p.words = append(p.words, word, in.bits, uint64(in.hits))
	} else {
		p.words = append(p.words, word, in.bits)
	}
	i := p.len() - 1
	if i == 0 || p.end(i-1) <= in.end {
		return
	}
	var own [widePlace]uint64
	copy(own[:], p.words[i*p.width:])
	for ; i > 0 && p.end(i-1) > in.end; i-- {
		copy(p.words[i*p.width:], p.words[(i-1)*p.width:i*p.width])
	}
	copy(p.words[i*p.width:(i+1)*p.width], own[:])
}

// widen gives each place three words.
func (p *places) widen() {
	out := make(State, 0, (p.len()+1)*widePlace)
	for i := range p.len() {
		out = append(out, uint64(p.end(i))|wideFlag, p.words[i*p.width+1], uint64(p.hits(i)))
	}
	p.words, p.width = out, widePlace
}

func (w *held) look(s State, now Instant, h Hits) (used int64, fits Instant) {
	p := readPlaces(s)
	first := p.live(now)
	used = p.used(first)
	if h.N == 0 {
		return used, now
	}
	if h.N > w.quota {
		return used, never
	}
	fits = now
	if p.len()-first >= w.most {
		fits = p.end(first)
	}
	for i, over := first, used+h.N-w.quota; over > 0; i++ {
		over -= p.hits(i)
		fits = max(fits, p.end(i))
	}
	return used, fits
}

// add counts nothing: hits without a hold are not in flight.
func (w *held) add(s State, _ Instant, _ Hits) State { return s }

// sub gives nothing back.
func (w *held) sub(s State, _, _ Instant, _ Hits) State { return s }

func (w *held) hold(s State, now Instant, n int64, h Hold) (State, bool) {
	p := readPlaces(s)
	first := p.live(now)
	if p.len()-first >= w.most {
		return s, false
	}
	p.drop(first)
	p.insert(place{h.End, placeBits(h.ID), min(n, mostHeld)})
	return p.words, true
}

// end releases a place, whatever its hits cost.
func (w *held) end(s State, now Instant, id [12]byte, _ int64) (State, bool) {
	p := readPlaces(s)
	first := p.live(now)
	i := p.find(first, id)
	if i < 0 {
		return s, false
	}
	p.cut(first, i)
	return p.words, true
}

func (w *held) renew(s State, now Instant, id [12]byte, end Instant) (State, bool) {
	p := readPlaces(s)
	first := p.live(now)
	i := p.find(first, id)
	if i < 0 {
		return s, false
	}
	own := p.cut(first, i)
	own.end = end
	p.insert(own)
	return p.words, true
}

// over reports whether n hits do not fit in the quota. Hits without a hold do not
// count, so they always fit.
func (w *held) over(s State, now Instant, n int64, held bool) bool {
	p := readPlaces(s)
	return held && (n > w.quota || p.used(p.live(now)) > w.quota-n)
}

func (w *held) bare(s State, now Instant) State {
	p := readPlaces(s)
	p.drop(p.live(now))
	return p.words
}

func (w *held) has(s State, now Instant, id [12]byte) bool {
	p := readPlaces(s)
	return p.find(p.live(now), id) >= 0
}

func (w *held) alive(s State, now Instant) int {
	p := readPlaces(s)
	return p.len() - p.live(now)
}

func (w *held) holds(s State, now Instant) (cells []Cell) {
	p := readPlaces(s)
	for i := p.live(now); i < p.len(); i++ {
		cells = append(cells, Cell{Start: p.end(i) - w.length, Length: time.Duration(w.length) * time.Microsecond, Hits: p.hits(i)})
	}
	return cells
}

func (w *held) expires(s State) Instant {
	p := readPlaces(s)
	return p.end(p.len() - 1)
}

// seen returns the instant of the newest renewal.
func (w *held) seen(s State) Instant { return max(0, w.expires(s)-w.length) }

func (w *held) wordsAfter(s State, h Hits) int {
	p := readPlaces(s)
	if h.N > fewHits && p.width == narrowPlace {
		return (p.len() + 1) * widePlace
	}
	return len(s) + p.width
}

func (w *held) maxWords() int { return widePlace * w.most }

// history returns the places by the instant at which they were taken or renewed last, if the
// length has not changed since.
func (w *held) history(s State, now Instant, _ int64) (cells []Cell, cut bool) {
	p := readPlaces(s)
	for i := p.live(now); i < p.len(); i++ {
		cells = dated(cells, p.end(i)-w.length, p.hits(i))
	}
	return cells, false
}
