package window

import (
	"fmt"
	"math/bits"
	"time"
)

// A bucket is the generic cell rate algorithm (ITU-T I.371, ATM Forum TM 4.0),
// the leaky bucket as a meter. Each hit books interval = window/quota. Hits are
// admitted while at most burst intervals are booked ahead of now. Over any span
// t that admits at most burst + t·quota/window hits.
//
// The interval may not be a whole number of microseconds. What is booked is
// kept as whole microseconds and a fraction of the quota, so that it is exact.
// When the quota changes, a fraction is rounded up to a whole microsecond.
//
// State: the instant until which time is booked, and where the fraction is not
// zero also its numerator and its denominator, the quota.
const bucketWords = 3

type bucket struct {
	quota, burst int64
	length       uint64 // µs
}

func newBucket(l *Limit) algorithm {
	length := l.Window.micros()
	return &bucket{
		quota: l.Quota, burst: l.Capacity(), length: uint64(length),
	}
}

// ahead returns how far ahead of now time is booked: d + f/quota microseconds.
func (b *bucket) ahead(s State, now Instant) (d int64, f uint64) {
	if len(s) == 0 || Instant(s[0]) < now {
		return 0, 0
	}
	d = int64(s[0]) - int64(now)
	if len(s) < bucketWords {
		return d, 0
	}
	if s[2] != uint64(b.quota) {
		return d + 1, 0
	}
	return d, s[1]
}

// limitAhead returns how far ahead of now time may be booked so that n more
// hits fit, in whole microseconds rounded down. A fraction f is booked already.
// It returns -1 when the hits fit an empty bucket only.
func (b *bucket) limitAhead(n int64, f uint64) int64 {
	hi, lo := bits.Mul64(uint64(b.burst-n), b.length)
	lo, borrow := bits.Sub64(lo, f, 0)
	if borrow > hi {
		return -1
	}
	q, _ := bits.Div64(hi-borrow, lo, uint64(b.quota))
	return int64(q)
}

func (b *bucket) look(s State, now Instant, h Hits) (used int64, fits Instant) {
	n, burst := h.N, b.burst
	if burst == 0 || b.quota == 0 {
		if n > 0 {
			return 0, never
		}
		return 0, now
	}
	d, f := b.ahead(s, now)
	switch {
	case d > b.limitAhead(0, f):
		used = burst
	case d > 0 || f > 0: // ⌈(d·quota + f) / window⌉
		hi, lo := bits.Mul64(uint64(d), uint64(b.quota))
		lo, carry := bits.Add64(lo, f, 0)
		q, r := bits.Div64(hi+carry, lo, b.length)
		if used = int64(q); r > 0 {
			used++
		}
	}
	if n == 0 {
		return used, now
	}
	if n > burst {
		return used, never
	}
	most := b.limitAhead(n, f)
	if d <= most {
		return used, now
	}
	return used, now + Instant(d-most)
}

func (b *bucket) add(s State, now Instant, h Hits) State {
	if b.quota == 0 {
		return s[:0]
	}
	d, f := b.ahead(s, now)
	hi, lo := bits.Mul64(uint64(h.N), b.length)
	lo, carry := bits.Add64(lo, f, 0)
	hi += carry
	if hi >= uint64(b.quota) { // more than 2^64 µs: booked as far as an instant goes
		return append(s[:0], uint64(MaxHits))
	}
	q, r := bits.Div64(hi, lo, uint64(b.quota))
	until := uint64(now) + uint64(d) + min(q, uint64(MaxHits))
	if until >= uint64(MaxHits) {
		return append(s[:0], uint64(MaxHits))
	}
	return advanceTo(s, until, r, uint64(b.quota))
}

// sub gives back the time that the hits have booked, less what has drained since at.
func (b *bucket) sub(s State, now, at Instant, h Hits) State {
	switch {
	case at == anytime && b.quota == 0:
		return s[:0]
	case at == anytime:
		at = now
	case b.quota == 0:
		return s
	}
	// In 1/quota µs: n·length - passed·quota.
	backHi, backLo := bits.Mul64(uint64(h.N), b.length)
	goneHi, goneLo := bits.Mul64(uint64(max(now-at, 0)), uint64(b.quota))
	backLo, borrow := bits.Sub64(backLo, goneLo, 0)
	backHi, borrow = bits.Sub64(backHi, goneHi, borrow)
	if borrow > 0 {
		return s
	}
	d, f := b.ahead(s, now)
	// What is left is d + f/quota less that.
	hi, lo := bits.Mul64(uint64(d), uint64(b.quota))
	lo, carry := bits.Add64(lo, f, 0)
	hi += carry
	lo, borrow = bits.Sub64(lo, backLo, 0)
	hi, borrow = bits.Sub64(hi, backHi, borrow)
	if borrow > 0 || hi|lo == 0 {
		return s[:0]
	}
	q, r := bits.Div64(hi, lo, uint64(b.quota))
	return advanceTo(s, uint64(now)+q, r, uint64(b.quota))
}

// advanceTo writes until + f/quota.
func advanceTo(s State, until, f, quota uint64) State {
	if f == 0 {
		return append(s[:0], until)
	}
	return append(s[:0], until, f, quota)
}

func (b *bucket) expires(s State) Instant {
	if len(s) == bucketWords {
		return Instant(s[0]) + 1 // a fraction of the next microsecond is booked
	}
	return Instant(s[0])
}

// seen returns 0: an earlier instant has more booked ahead of it, and so is
// never more generous.
func (b *bucket) seen(State) Instant { return 0 }

func (b *bucket) wordsAfter(State, Hits) int { return bucketWords }

func (b *bucket) maxWords() int { return bucketWords }

func (b *bucket) history(State, Instant, int64) ([]Cell, bool) { return nil, false }

func describeBucket(name string, w *Window) string {
	if w.Burst > 0 {
		return fmt.Sprintf("%s burst %d", describeLength(name, w), w.Burst)
	}
	return describeLength(name, w)
}

// validateBucket bounds the time that a full bucket takes to drain, and the
// products that a script has to compute exactly in a double.
func validateBucket(l *Limit, f *faults) {
	if l.Quota < 1 {
		return
	}
	w := l.Window.micros()
	common := gcd(w, l.Quota)
	if hi, lo := bits.Mul64(uint64(l.Capacity()), uint64(w/common)); hi > 0 || lo > uint64(MaxHits) {
		f.add("window.burst", "%d hits at %d per %s need products above 2^53: want a smaller burst, or a quota and length with a common divisor",
			l.Capacity(), l.Quota, Length(l.Window.Length))
		return
	}
	if full := l.Capacity() * (w / common) / (l.Quota / common); full > int64(MaxLength/time.Microsecond) {
		f.add("window.burst", "%d hits at %d per %s take more than 100 years to refill: want a smaller burst",
			l.Capacity(), l.Quota, Length(l.Window.Length))
	}
}

// gcd returns the greatest common divisor.
func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
