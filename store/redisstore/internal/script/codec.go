package script

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore/internal/keyname"
	"github.com/weirhq/weir/window"
)

// Codec turns calls into what a program reads, and replies into results. It is
// safe for concurrent use.
type Codec struct {
	names     keyname.Names
	programs  programs
	calendars calendars
	buffers   sync.Pool // of *[]byte

	leftBehind leftBehind
}

// NewCodec returns a codec for keys that begin with prefix.
func NewCodec(prefix string) *Codec {
	c := &Codec{names: keyname.Names{Prefix: prefix}}
	c.buffers.New = func() any { return new([]byte) }
	return c
}

// Names returns the names of keys.
func (c *Codec) Names() keyname.Names { return c.names }

// What a call asks for an op: the constants of lua/head.lua.
const (
	askLook byte = iota
	askEnforce
	askShadow
	askRecord
	askRefund
	askCountDenied      = 8  // with look, enforce and shadow
	askUpTo        byte = 32 // with all of these, and those in full.go: the most that may fit follows
)

// askCode returns the code of what verb asks for op.
func askCode(verb store.Verb, op *store.Op) byte {
	if op.N <= 0 {
		return askLook
	}
	asked := askLook
	switch verb {
	case store.Take:
		switch op.Role {
		case store.Enforce:
			asked = askEnforce
		case store.Shadow:
			asked = askShadow
		case store.Look:
		default:
			return askRecord
		}
		if op.CountDenied {
			asked += askCountDenied
		}
	case store.Record:
		asked = askRecord
	case store.Refund:
		asked = askRefund
	}
	return asked
}

// mostUpTo returns how much an op of a call that takes up to what fits, or reserves, can take at most, as
// its part in what fits under all ops; it reports false if the op takes what it asks for.
func mostUpTo(verb store.Verb, op *store.Op) (most int64, upTo bool) {
	if op.N <= 0 || op.Limit.Measure == window.Distinct || verb != store.Reserve && (verb != store.Take || !op.UpTo) {
		return 0, false
	}
	if most = op.Limit.Capacity(); verb == store.Take && op.Role != store.Enforce || most == window.Unlimited {
		most = unlimited
	}
	return most, true
}

// unlimited is a quota above every number of hits.
const unlimited = 1<<56 - 1

// put7 appends numbers that are below 2^56 in 7 bytes each, the lowest first.
func put7[N ~int64](b []byte, numbers ...N) []byte {
	for _, n := range numbers {
		b = append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24), byte(n>>32), byte(n>>40), byte(n>>48))
	}
	return b
}

// get7 returns the number that put7 wrote.
func get7(b string) int64 {
	_ = b[6]
	return int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16 | int64(b[3])<<24 | int64(b[4])<<32 | int64(b[5])<<40 | int64(b[6])<<48
}

// getDouble returns the whole number that struct wrote as a double.
func getDouble(b string) int64 {
	return int64(math.Float64frombits(binary.LittleEndian.Uint64([]byte(b[:8]))))
}

// appendLimit appends the numbers of a limit. A wrapper's are followed by the
// code and the numbers of its base, and those of its inner limit.
func (c *Codec) appendLimit(b []byte, k *kind, l *window.Compiled, near window.Instant) []byte {
	b = k.numbers(c, b, l, near)
	if !k.wraps {
		return b
	}
	base, inner := l.Parts()
	for _, part := range [2]*window.Compiled{base, inner} {
		of := kindFor(part)
		b = c.appendLimit(append(b, of.code), of, part, near)
	}
	return b
}

// quota returns a limit's quota as a program reads it.
func quota(l *window.Compiled) int64 {
	if q := l.Quota; q != window.Unlimited {
		return q
	}
	return unlimited
}

// highest returns the largest quota under which the keys of l are counted.
func highest(l *window.Compiled) int64 { return max(l.Quota, l.Highest) }

func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }

func slidingNumbers(_ *Codec, b []byte, l *window.Compiled, _ window.Instant) []byte {
	group, most, precision := groupSize(l), highest(l), l.WithDefaults().Window.Precision
	if group > 1 { // as in package window
		most = min(group*int64(precision), window.MaxHits)
	}
	return binary.LittleEndian.AppendUint16(put7(b, quota(l), micros(l.Window.Length), group, most), uint16(precision))
}

func cellsNumbers(_ *Codec, b []byte, l *window.Compiled, _ window.Instant) []byte {
	return put7(b, quota(l), micros(l.Window.Length), cellWidth(l))
}

func lengthNumbers(_ *Codec, b []byte, l *window.Compiled, _ window.Instant) []byte {
	return put7(b, quota(l), micros(l.Window.Length))
}

func quotaNumber(_ *Codec, b []byte, l *window.Compiled, _ window.Instant) []byte {
	return put7(b, quota(l))
}

func membersNumbers(_ *Codec, b []byte, l *window.Compiled, _ window.Instant) []byte {
	return put7(b, quota(l), highest(l), micros(l.Window.Length))
}

func membersOfCalendarNumbers(c *Codec, b []byte, l *window.Compiled, near window.Instant) []byte {
	periods := c.calendars.periods(l.Window, near)
	return put7(put7(b, quota(l), highest(l)), periods[:]...)
}

func calendarNumbers(c *Codec, b []byte, l *window.Compiled, near window.Instant) []byte {
	periods := c.calendars.periods(l.Window, near)
	keeps := int64(0)
	if _, _, ok := l.Exported(nil, near, true); ok {
		keeps = 1
	}
	return put7(put7(b, quota(l), keeps), periods[:]...)
}

func bucketNumbers(_ *Codec, b []byte, l *window.Compiled, _ window.Instant) []byte {
	hits, per, divisor := rate(l.Limit)
	return put7(b, l.Capacity(), hits, per, divisor)
}

func afterNumbers(_ *Codec, b []byte, l *window.Compiled, _ window.Instant) []byte {
	return put7(b, l.After.Count)
}

// groupSize returns the number of hits that share a date in a sliding window.
func groupSize(l *window.Compiled) int64 {
	return max(1, divideUp(highest(l), int64(l.WithDefaults().Window.Precision)))
}

// InGroups reports whether hits under l share their dates, or may.
func InGroups(l *window.Compiled) bool {
	base, inner := l.Parts()
	grouped := inner.Measure != window.Distinct && inner.Window.Kind == window.KindSliding && groupSize(inner) > 1
	return grouped || base != nil && InGroups(base)
}

// cellWidth returns the length of a cell in microseconds.
func cellWidth(l *window.Compiled) int64 {
	w := l.WithDefaults().Window
	return divideUp(micros(w.Length), int64(w.N))
}

// divideUp returns a/b rounded up, for b > 0.
func divideUp(a, b int64) int64 { return (a + b - 1) / b }

// rate returns the quota and the length of the window in microseconds, both divided by
// their greatest common divisor, and that divisor: 1, 1,000,000 and 60 for 60 hits a
// minute. With the small numbers a program computes exactly in floating point.
func rate(l *window.Limit) (hits, per, divisor int64) {
	hits, per = l.Quota, micros(l.Window.Length)
	divisor = per
	for rest := hits; rest > 0; {
		divisor, rest = rest, divisor%rest
	}
	divisor = max(1, divisor)
	return hits / divisor, per / divisor, divisor
}

// periods are the calendar periods before, around and after an instant: the
// start of the first and the ends of all three. A server whose clock is near
// finds its own period among them.
type periods [4]window.Instant

// calendars holds the periods of each window, because finding them costs as
// much as the rest of a call. The zero value is ready; it is safe for concurrent
// use.
type calendars struct {
	known atomic.Pointer[map[window.Window]periods] // never changed, but replaced
}

// mostCalendars is how many windows are kept: more than rules have.
const mostCalendars = 1000

// periods returns the periods of w around near.
func (c *calendars) periods(w window.Window, near window.Instant) periods {
	known := c.known.Load()
	if known != nil {
		if p, ok := (*known)[w]; ok && p[1] <= near && near < p[2] {
			return p
		}
	}
	start, end := w.PeriodBounds(near)
	before, _ := w.PeriodBounds(start - 1)
	_, after := w.PeriodBounds(end)
	p := periods{max(before, 0), max(start, 0), end, after}
	next := map[window.Window]periods{}
	if known != nil && len(*known) < mostCalendars {
		next = maps.Clone(*known)
	}
	next[w] = p
	c.known.CompareAndSwap(known, &next) // after a lost race the next call repeats this
	return p
}

// Fits returns an error for ops that are too many, or whose limits the programs cannot
// compute: one that was made without [window.Compile], or that is for counting in
// memory only.
func Fits(ops []store.Op) error {
	if len(ops) > MaxOps {
		return fmt.Errorf("weir: %d ops in one call: want at most %d", len(ops), MaxOps)
	}
	for i := range ops {
		bad := func(format string, args ...any) error {
			return fmt.Errorf("weir: rule %q: "+format, append([]any{ops[i].Space.Name()}, args...)...)
		}
		l := ops[i].Limit
		if l == nil {
			return bad("no limit")
		}
		base, inner := l.Parts()
		for _, l := range [2]*window.Compiled{base, inner} {
			switch {
			case l == nil: // no base
			case l.Limit == nil:
				return bad("the limit was not made by window.Compile")
			case l.Window.Kind == window.KindSliding && l.Quota == window.Unlimited:
				return bad("a sliding window without a quota")
			case l.Window.Kind == window.KindBucket:
				_, micros, _ := rate(l.Limit)
				if hi, lo := bits.Mul64(uint64(l.Capacity()), uint64(micros)); hi > 0 || lo > uint64(window.MaxHits) {
					return bad("a bucket of %d hits at %d per %v has products above 2^53: only a store in memory counts it",
						l.Capacity(), l.Quota, l.Window.Length)
				}
			}
		}
	}
	return nil
}

// fingerprint returns what a state keeps of a member: 128 bits of its SHA-256, the
// same in every process. With 64, a caller could compute two members that have the same.
func fingerprint(member []byte) []byte {
	sum := sha256.Sum256(member)
	return sum[:16]
}
