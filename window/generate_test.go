package window_test

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/weirhq/weir/window"
)

// source returns numbers from a fuzzer's bytes, and zeros after their end.
type source struct{ data []byte }

func (g *source) byte() byte {
	if len(g.data) == 0 {
		return 0
	}
	b := g.data[0]
	g.data = g.data[1:]
	return b
}

func (g *source) below(n int) int { return int(g.byte()) % n }

// endless is a source of random numbers, which never end.
type endless struct {
	source
	made uint64
}

// Uint64 implements rand.Source.
func (g *endless) Uint64() uint64 {
	if len(g.data) > 0 {
		return g.bits()
	}
	g.made += 0x9e3779b97f4a7c15
	return g.made
}

func (g *source) bits() uint64 {
	var b [8]byte
	n := copy(b[:], g.data)
	g.data = g.data[n:]
	return binary.LittleEndian.Uint64(b[:])
}

var (
	someQuotas  = []int64{0, 1, 2, 3, 5, 7, 10, 60, 99, 100, 101, 199, 250, 1000, 12_345, 1 << 20, 1 << 40, window.MaxHits, window.Unlimited}
	someLengths = []time.Duration{
		time.Microsecond, 2 * time.Microsecond, 3 * time.Microsecond, 17 * time.Microsecond, time.Millisecond, time.Second,
		10 * time.Second, time.Minute, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, window.MaxLength,
	}
	someCounts = []int{0, 1, 2, 3, 7, 10, 100, 1000}                                                         // of groups and cells
	allKinds   = kindsOf(func(k window.Kind) bool { return k != window.KindHeld })                           // which count hits without holds
	conditions = kindsOf(func(k window.Kind) bool { return k != window.KindBucket && k != window.KindHeld }) // of after
	someZones  = []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/St_Johns"}
)

// kindsOf returns the kinds that pick picks.
func kindsOf(pick func(window.Kind) bool) (all []window.Kind) {
	for k := window.Kind(0); k.String() != "unknown"; k++ {
		if pick(k) {
			all = append(all, k)
		}
	}
	return all
}

// window draws a window of a kind. Validate may refuse it.
func (g *source) window(kind window.Kind) window.Window {
	w := window.Window{Kind: kind}
	switch kind {
	case window.KindEver:
		return w
	case window.KindCalendar:
		w.Period = window.Period(1 + g.below(6))
		w.Zone, _ = time.LoadLocation(someZones[g.below(len(someZones))])
		switch w.Period {
		case window.Week:
			w.Anchor = g.below(8)
		case window.Month:
			w.Anchor = g.below(32)
		}
		return w
	}
	if w.Length = someLengths[g.below(len(someLengths))]; g.below(4) == 0 {
		w.Length += time.Duration(g.byte()) * time.Microsecond
	}
	switch kind {
	case window.KindAligned:
		w.Length = max(w.Length, time.Second)
	case window.KindSliding:
		w.Precision = someCounts[g.below(len(someCounts))]
	case window.KindCells:
		w.N = someCounts[g.below(len(someCounts))]
	case window.KindBucket:
		w.Burst = int64(someCounts[g.below(len(someCounts))])
	}
	return w
}

func (g *source) limit() window.Limit {
	l := window.Limit{
		Window:  g.window(allKinds[g.below(len(allKinds))]),
		Measure: window.Measure(g.below(3)),
	}
	if l.Quota = someQuotas[g.below(len(someQuotas))]; g.below(8) == 0 {
		l.Quota += int64(g.byte())
	}
	if g.below(8) == 0 {
		l.Highest = someQuotas[g.below(len(someQuotas)-1)]
	}
	if g.below(8) == 0 {
		l.After = window.After{Count: int64(1 + g.below(40)), Window: g.window(conditions[g.below(len(conditions))])}
	}
	l.Export = g.below(3) == 0
	return l
}

// call draws the next call: mostly takes of a few hits. Some calls come at the
// same instant, at a window's edge, in the past, or a long time later.
func (g *source) call(l *window.Limit, now window.Instant, last time.Duration) call {
	c := call{verb: []verb{take, take, take, check, record, refund}[g.below(6)], hits: window.Hits{N: int64(g.below(4))}}
	switch g.below(8) {
	case 0:
		c.hits.N = l.Quota - 2 + int64(g.below(4))
	case 1:
		c.hits.N = int64(g.bits() >> (g.byte() % 64))
	}
	if l.Measure == window.Distinct {
		c.hits.Member = uint64(g.below(12))
	}
	length := l.Window.Length
	if length == 0 {
		length = 20 * time.Hour
	}
	part := length / 256
	switch g.below(10) {
	case 0: // the same instant
	case 1:
		now = now.Add(length) + window.Instant(g.below(3)-1)
	case 2: // to when the last call said to come back
		now = now.Add(last) + window.Instant(g.below(3)-1)
	case 3:
		now = now.Add(-part * time.Duration(g.byte()))
	case 4:
		now += window.Instant(g.bits() >> (12 + g.byte()%52))
	case 5:
		now++
	case 6:
		now = now.Add(-3 * length)
	default:
		now = now.Add(part * time.Duration(g.byte()) / 4)
	}
	c.now = max(0, min(now, latestInstant))
	return c
}

// latestInstant is the last one that counts as itself, in 2155: the longest
// window behind it ends below 2^53.
const latestInstant = window.Instant(window.MaxHits) - window.Instant(window.MaxLength/time.Microsecond)

// randomBytes returns n bytes for a source.
func randomBytes(rnd *rand.Rand, n int) []byte {
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, rnd.Uint64())
	}
	return b[:n]
}
