package window

import (
	"math/bits"
	"time"

	"github.com/weirhq/weir/fault"
)

// Validate returns everything that is wrong with l as a [fault.List], with the
// paths "quota", "measure", "window.length", "after.window.n" and so on. A
// limit that passes keeps every product of its numbers below 2^53, so that the
// same arithmetic is exact in a script of a shared store.
func (l *Limit) Validate() error {
	f := faults{}
	l.validate(&f)
	return f.list.Err()
}

// faults collects the faults of a limit. Their paths start with path.
type faults struct {
	path string
	list fault.List
}

func (f *faults) add(field, format string, args ...any) {
	f.list.Addf(f.path+field, format, args...)
}

func (l *Limit) validate(f *faults) {
	w := &l.Window
	switch {
	case l.Quota < Unlimited || l.Quota > MaxHits:
		f.add("quota", "%d: want 0 to %d", l.Quota, MaxHits)
	case l.Quota == Unlimited && (w.Kind == KindSliding || w.Kind == KindBucket || l.Measure == Distinct):
		f.add("quota", "a counter without a limit needs a cells, fixed or calendar window and counts hits or sums")
	}
	switch {
	case l.Measure > Distinct:
		f.add("measure", "unknown: want count, sum or distinct")
	case l.Measure == Distinct && (w.Kind == KindCells || w.Kind == KindBucket):
		f.add("measure", "distinct members cannot be counted in a %s window: want sliding, fixed or calendar", w.Kind)
	case l.Measure == Distinct && l.Quota > MaxMembers:
		f.add("quota", "%d: distinct members are counted exactly up to %d", l.Quota, MaxMembers)
	}
	before := len(f.list)
	w.validate(f)
	if w.Kind == KindBucket && len(f.list) == before {
		l.validateBucket(f)
	}
	l.validateAfter(f)
}

func (w *Window) validate(f *faults) {
	if w.Kind > KindBucket {
		f.add("window.kind", "unknown: want sliding, cells, fixed, calendar or bucket")
		return
	}
	if w.Kind == KindCalendar {
		w.validateCalendar(f)
	} else {
		w.validateLength(f)
	}
	only := func(kind Kind, field string, set bool) {
		if set && w.Kind != kind {
			f.add(field, "only a %s window has it", kind)
		}
	}
	only(KindSliding, "window.precision", w.Precision != 0)
	only(KindCells, "window.n", w.N != 0)
	only(KindBucket, "window.burst", w.Burst != 0)
	only(KindCalendar, "window.period", w.Period != 0)
	only(KindCalendar, "window.anchor", w.Anchor != 0)
	only(KindCalendar, "window.zone", w.Zone != nil)
	if w.Precision < 0 || w.Precision > MaxPrecision {
		f.add("window.precision", "%d: want 1 to %d", w.Precision, MaxPrecision)
	}
	if w.N < 0 || w.N > MaxCells {
		f.add("window.n", "%d: want 1 to %d cells", w.N, MaxCells)
	} else if w.Kind == KindCells && int64(w.cells()) > w.micros() {
		f.add("window.n", "%d cells are more than the window has microseconds", w.cells())
	}
	if w.Burst < 0 || w.Burst > MaxHits {
		f.add("window.burst", "%d: want 1 to %d", w.Burst, MaxHits)
	}
}

func (w *Window) validateLength(f *faults) {
	switch {
	case w.Length < time.Microsecond:
		f.add("window.length", "%s: want at least a microsecond", w.Length)
	case w.Length > MaxLength:
		f.add("window.length", "%s: want at most 100 years, %s", w.Length, MaxLength)
	case w.Length%time.Microsecond != 0:
		f.add("window.length", "%s: want whole microseconds", w.Length)
	}
}

func (w *Window) validateCalendar(f *faults) {
	if w.Length != 0 {
		f.add("window.length", "a calendar window has a period instead")
	}
	if w.Period < Minute || w.Period > Year {
		f.add("window.period", "want minute, hour, day, week, month or year")
	}
	highest := 0
	switch w.Period {
	case Week:
		highest = 7
	case Month:
		highest = 31
	}
	if w.Anchor < 0 || w.Anchor > highest {
		if highest == 0 {
			f.add("window.anchor", "only weeks (1 Monday to 7 Sunday) and months (1 to 31) have one")
		} else {
			f.add("window.anchor", "%d: want 1 to %d", w.Anchor, highest)
		}
	}
}

// validateBucket bounds the time that a full bucket books, and the products
// that a script computes exactly in a double.
func (l *Limit) validateBucket(f *faults) {
	if l.Quota < 1 {
		return
	}
	w := l.Window.micros()
	common := gcd(w, l.Quota)
	if hi, lo := bits.Mul64(uint64(l.capacity()), uint64(w/common)); hi > 0 || lo > uint64(MaxHits) {
		f.add("window.burst", "%d hits at %d per %s need products above 2^53: want a smaller burst, or a quota and length with a common divisor",
			l.capacity(), l.Quota, Length(l.Window.Length))
		return
	}
	if full := l.capacity() * (w / common) / (l.Quota / common); full > int64(MaxLength/time.Microsecond) {
		f.add("window.burst", "%d hits at %d per %s take more than 100 years to refill: want a smaller burst",
			l.capacity(), l.Quota, Length(l.Window.Length))
	}
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (l *Limit) validateAfter(f *faults) {
	a := &l.After
	if *a == (After{}) {
		return
	}
	if a.Count < 1 || a.Count > MaxHits {
		f.add("after.count", "%d: want 1 to %d", a.Count, MaxHits)
	}
	if l.Measure == Distinct || l.Quota == Unlimited {
		f.add("after", "only a limit on hits or sums can wait for a count")
	}
	if a.Window.Kind == KindBucket {
		f.add("after.window.kind", "a bucket does not count: want sliding, cells, fixed or calendar")
		return
	}
	f.path = "after."
	a.Window.validate(f)
	f.path = ""
}
