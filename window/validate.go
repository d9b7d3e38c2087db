package window

import (
	"strings"
	"time"

	"github.com/weirhq/weir/fault"
)

// faults collects the faults of a limit. Their paths start with path.
type faults struct {
	path string
	list fault.List
}

func (f *faults) add(field, format string, args ...any) {
	f.list.Addf(f.path+field, format, args...)
}

// check returns everything that is wrong with l as a [fault.List], or nil.
func (l *Limit) check() error {
	f := faults{}
	l.validate(&f)
	return f.list.Err()
}

func (l *Limit) validate(f *faults) {
	kind, known := l.Window.row()
	switch {
	case l.Quota < Unlimited || l.Quota > MaxHits:
		f.add("quota", "%d: want 0 to %d", l.Quota, MaxHits)
	case l.Highest < 0 || l.Highest > MaxHits:
		f.add("highest", "%d: want 0 to %d", l.Highest, MaxHits)
	case l.Quota == Unlimited && known && (!kind.unlimited || l.Measure == Distinct):
		f.add("quota", "a counter without a limit needs a %s window and counts hits or sums", names(func(k *row) bool { return k.unlimited }))
	}
	switch {
	case l.Measure > Distinct:
		f.add("measure", "unknown: want count, sum or distinct")
	case l.Measure == Distinct && known && kind.members == nil:
		f.add("measure", "distinct members cannot be counted in %s windows: want %s", kind.name, names(func(k *row) bool { return k.members != nil }))
	case l.Measure == Distinct && l.highest() > MaxEntries:
		f.add("quota", "%d: distinct members are counted exactly up to %d", l.highest(), MaxEntries)
	}
	before := len(f.list)
	l.Window.validate(f)
	if len(f.list) == before && kind.validate != nil {
		kind.validate(l, f)
	}
	for i := range wrappers {
		wrappers[i].validate(l, f)
	}
	l.validateHold(f)
}

func (w *Window) validate(f *faults) {
	kind, known := w.row()
	if !known {
		f.add("window.kind", "unknown: want %s", names(func(*row) bool { return true }))
		return
	}
	switch {
	case kind.fields&hasLength != 0:
		w.validateLength(&kind, f)
	case w.Length != 0:
		f.add("window.length", "a %s window has a period instead", kind.name)
	}
	if kind.fields&hasPeriod != 0 {
		w.validatePeriod(f)
	}
	only := func(has field, name string, set bool) {
		if set && kind.fields&has == 0 {
			f.add(name, "only a %s window has it", names(func(k *row) bool { return k.fields&has != 0 }))
		}
	}
	only(hasPrecision, "window.precision", w.Precision != 0)
	only(hasN, "window.n", w.N != 0)
	only(hasBurst, "window.burst", w.Burst != 0)
	only(hasPeriod, "window.period", w.Period != 0)
	only(hasPeriod, "window.anchor", w.Anchor != 0)
	only(hasPeriod, "window.zone", w.Zone != nil)
	if w.Precision < 0 || w.Precision > MaxEntries {
		f.add("window.precision", "%d: want 1 to %d", w.Precision, MaxEntries)
	}
	if w.N < 0 || w.N > MaxEntries {
		f.add("window.n", "%d: want 1 to %d cells", w.N, MaxEntries)
	} else if kind.fields&hasN != 0 && w.micros() > 0 && int64(w.cells()) > w.micros() {
		f.add("window.n", "%d cells are more than the window has microseconds", w.cells())
	}
	if w.Burst < 0 || w.Burst > MaxHits {
		f.add("window.burst", "%d: want 1 to %d", w.Burst, MaxHits)
	}
}

func (w *Window) validateLength(kind *row, f *faults) {
	switch {
	case w.Length >= time.Microsecond && w.Length < kind.least:
		f.add("window.length", "%s: want at least %s for a window of kind %s", w.Length, kind.least, kind.name)
	case w.Length < time.Microsecond:
		f.add("window.length", "%s: want at least a microsecond", w.Length)
	case w.Length > MaxLength:
		f.add("window.length", "%s: want at most 100 years, %s", w.Length, MaxLength)
	case w.Length%time.Microsecond != 0:
		f.add("window.length", "%s: want whole microseconds", w.Length)
	}
}

func (w *Window) validatePeriod(f *faults) {
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

// row returns the row of w's kind; ok is false when there is no such kind.
func (w *Window) row() (_ row, ok bool) {
	if int(w.Kind) < len(kinds) {
		return kinds[w.Kind], true
	}
	return row{}, false
}

// names returns the names of the kinds that pick picks: "cells, fixed or calendar".
func names(pick func(*row) bool) string {
	var all []string
	for i := range kinds {
		if pick(&kinds[i]) {
			all = append(all, kinds[i].name)
		}
	}
	last := len(all) - 1
	if last == 0 {
		return all[0]
	}
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

// validateHeld checks a limit whose window is held.
func validateHeld(l *Limit, f *faults) {
	if l.Quota > mostHeld {
		f.add("quota", "%d: want at most %d at the same time", l.Quota, mostHeld)
	}
	if l.Measure == Count && l.MaxHolds > 0 && int64(l.MaxHolds) < l.Quota {
		f.add("max_holds", "%d: want at least the limit, %d", l.MaxHolds, l.Quota)
	}
	if l.Measure == Count && l.MaxHolds == 0 && l.Quota > MaxEntries {
		f.add("quota", "%d: want at most %d places", l.Quota, MaxEntries)
	}
}

// validateHold checks what a limit says about holds.
func (l *Limit) validateHold(f *faults) {
	kind, known := l.Window.row()
	if !known {
		return
	}
	switch {
	case l.Hold == 0:
	case kind.holds:
		f.add("hold", "a %s window holds by itself: want another window, or no hold", kind.name)
	case l.Measure == Distinct:
		f.add("hold", "members cannot be held: want a limit on hits or sums")
	case l.After != After{}:
		f.add("hold", "does not go with after")
	case l.Quota == Unlimited:
		f.add("hold", "a counter cannot hold: want a limit")
	case l.Hold < time.Microsecond || l.Hold > MaxLength || l.Hold%time.Microsecond != 0:
		f.add("hold", "%s: want whole microseconds, at least one and at most 100 years", l.Hold)
	}
	if kind.holds && l.After != (After{}) {
		f.add("after", "does not go with a %s window", kind.name)
	}
	holds := l.Hold != 0 || kind.holds
	if l.Release && l.Hold == 0 {
		f.add("unsettled", "goes with hold")
	}
	switch {
	case l.MaxHolds != 0 && !holds:
		f.add("max_holds", "goes with hold or a held window")
	case l.MaxHolds < 0 || l.MaxHolds > MaxEntries:
		f.add("max_holds", "%d: want 1 to %d", l.MaxHolds, MaxEntries)
	}
}
