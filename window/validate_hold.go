package window

import "time"

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
