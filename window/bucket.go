package window

import "math/bits"

// A bucket is the generic cell rate algorithm (ITU-T I.371, ATM Forum TM 4.0),
// the leaky bucket as a meter: each hit books interval = window/quota, and
// hits are admitted while what is booked ahead of now is at most burst
// intervals. Over any span t that admits at most burst + t·quota/window hits.
//
// It is exact although the interval may not be a whole number of
// microseconds: what is booked is kept as a whole number and a fraction of the
// quota. When the quota changes under a fraction, that is rounded up, by less
// than a microsecond.
//
// State: the instant until which time is booked; where the fraction is not
// zero also its numerator and its denominator, the quota.
const bucketWords = 3

// booked is how far ahead of now time is booked: d + f/quota microseconds.
func (l *Compiled) booked(s State, now Instant) (d int64, f uint64) {
	if len(s) == 0 || Instant(s[0]) < now {
		return 0, 0
	}
	d = int64(s[0]) - int64(now)
	if len(s) < bucketWords {
		return d, 0
	}
	if s[2] != uint64(l.limit.Quota) {
		return d + 1, 0
	}
	return d, s[1]
}

// limitAhead is how far ahead of now time may be booked for n more hits to
// fit, in whole microseconds rounded down, given the fraction f that is booked
// already; -1 when only an empty bucket will do.
func (l *Compiled) limitAhead(n int64, f uint64) int64 {
	hi, lo := bits.Mul64(uint64(l.Capacity()-n), uint64(l.limit.Window.micros()))
	lo, borrow := bits.Sub64(lo, f, 0)
	if borrow > hi {
		return -1
	}
	q, _ := bits.Div64(hi-borrow, lo, uint64(l.limit.Quota))
	return int64(q)
}

func (l *Compiled) lookBucket(s State, now Instant, n int64) (used int64, fits Instant) {
	burst := l.Capacity()
	if burst == 0 || l.limit.Quota == 0 {
		if n > 0 {
			return 0, never
		}
		return 0, now
	}
	d, f := l.booked(s, now)
	switch {
	case d > l.limitAhead(0, f):
		used = burst
	case d > 0 || f > 0: // ⌈(d·quota + f) / window⌉
		hi, lo := bits.Mul64(uint64(d), uint64(l.limit.Quota))
		lo, carry := bits.Add64(lo, f, 0)
		q, r := bits.Div64(hi+carry, lo, uint64(l.limit.Window.micros()))
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
	ahead := l.limitAhead(n, f)
	if d <= ahead {
		return used, now
	}
	return used, now + Instant(d-ahead)
}

func (l *Compiled) addBucket(s State, now Instant, n int64) State {
	if l.limit.Quota == 0 {
		return s[:0]
	}
	d, f := l.booked(s, now)
	hi, lo := bits.Mul64(uint64(n), uint64(l.limit.Window.micros()))
	lo, carry := bits.Add64(lo, f, 0)
	hi += carry
	if hi >= uint64(l.limit.Quota) { // more than 2^64 µs: booked as far as an instant goes
		return append(s[:0], uint64(MaxHits))
	}
	q, r := bits.Div64(hi, lo, uint64(l.limit.Quota))
	until := uint64(now) + uint64(d) + min(q, uint64(MaxHits))
	if until >= uint64(MaxHits) {
		return append(s[:0], uint64(MaxHits))
	}
	return book(s, until, r, uint64(l.limit.Quota))
}

func (l *Compiled) subBucket(s State, now Instant, n int64) State {
	if l.limit.Quota == 0 {
		return s[:0]
	}
	d, f := l.booked(s, now)
	// What is left is d + f/quota - n·window/quota, computed in 1/quota µs.
	hi, lo := bits.Mul64(uint64(d), uint64(l.limit.Quota))
	lo, carry := bits.Add64(lo, f, 0)
	hi += carry
	backHi, backLo := bits.Mul64(uint64(n), uint64(l.limit.Window.micros()))
	lo, borrow := bits.Sub64(lo, backLo, 0)
	hi, borrow = bits.Sub64(hi, backHi, borrow)
	if borrow > 0 || hi|lo == 0 {
		return s[:0]
	}
	q, r := bits.Div64(hi, lo, uint64(l.limit.Quota))
	return book(s, uint64(now)+q, r, uint64(l.limit.Quota))
}

// book writes until + f/quota.
func book(s State, until, f, quota uint64) State {
	if f == 0 {
		return append(s[:0], until)
	}
	return append(s[:0], until, f, quota)
}

func expiresBucket(s State) Instant {
	if len(s) == bucketWords {
		return Instant(s[0]) + 1 // some fraction of the next microsecond is booked
	}
	return Instant(s[0])
}
