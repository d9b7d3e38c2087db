package window

import (
	"fmt"
	"time"
)

// PeriodBounds returns the start and the end of the period that contains now in a
// calendar window or an aligned one: start ≤ now < end.
//
// Minutes and hours follow the wall clock of the zone. A minute or an hour in
// which the zone's offset changes ends at the change, so that none is longer than
// its name. A day lasts from local midnight to the next, which is 23 or 25 hours
// when summer time begins or ends. If the change sets the clock back over
// midnight, the day that has begun goes on. Weeks, months and years consist of
// whole days.
func (w Window) PeriodBounds(now Instant) (start, end Instant) {
	if w.Kind == KindAligned {
		return w.alignedBounds(now)
	}
	zone := w.Zone
	if zone == nil {
		zone = time.UTC
	}
	t := now.Time().In(zone)
	switch w.Period {
	case Minute:
		return clockPeriod(t, time.Minute)
	case Hour:
		return clockPeriod(t, time.Hour)
	}
	date := wallDay(t)
	y, m, d := date.Date()
	if dayStart(y, m, d+1, zone) <= now {
		date = date.AddDate(0, 0, 1) // the clock went back over midnight
		y, m, d = date.Date()
	}
	anchor := max(w.Anchor, 1)
	switch w.Period {
	case Week:
		d -= (int(date.Weekday()) + 7 - anchor%7) % 7
		return dayStart(y, m, d, zone), dayStart(y, m, d+7, zone)
	case Month:
		if d < anchored(y, m, anchor) {
			m--
		}
		return dayStart(y, m, anchored(y, m, anchor), zone), dayStart(y, m+1, anchored(y, m+1, anchor), zone)
	case Year:
		return dayStart(y, 1, 1, zone), dayStart(y+1, 1, 1, zone)
	default:
		return dayStart(y, m, d, zone), dayStart(y, m, d+1, zone)
	}
}

// periodEnd returns the end of the period that contains now.
func (w Window) periodEnd(now Instant) Instant {
	_, end := w.PeriodBounds(now)
	return end
}

// clockPeriod returns the unit of wall time that contains t, cut where the
// zone's offset changes.
func clockPeriod(t time.Time, unit time.Duration) (start, end Instant) {
	_, offset := t.Zone()
	wall := At(t).Add(time.Duration(offset) * time.Second)
	u := int64(unit / time.Microsecond)
	start = At(t) - Instant(int64(wall)-floorDiv(int64(wall), u)*u)
	end = start + Instant(u)
	// Beyond its table of transitions, from 2038 on, ZoneBounds also gives ends
	// of years, a day early in leap years: only where the offset changes count.
	from, to := t.ZoneBounds()
	if changes(from) {
		start = max(start, At(from))
	}
	if to.After(t) && changes(to) {
		end = min(end, At(to))
	}
	return start, end
}

// changes reports whether the zone's offset changes at t.
func changes(t time.Time) bool {
	if t.IsZero() {
		return false
	}
	_, before := t.Add(-1).Zone()
	_, after := t.Zone()
	return before != after
}

// anchored returns the day of the month on which a month anchored to day
// starts: the last day in shorter months.
func anchored(y int, m time.Month, day int) int {
	last := time.Date(y, m+1, 0, 0, 0, 0, 0, time.UTC).Day()
	return min(day, last)
}

// dayStart returns the first instant of a date in zone. That is midnight,
// except where the clock skips midnight. Where the clock shows midnight twice,
// it is the first, although time.Date may return the second.
func dayStart(y int, m time.Month, d int, zone *time.Location) Instant {
	t := time.Date(y, m, d, 0, 0, 0, 0, zone)
	from, to := t.ZoneBounds()
	date := time.Date(y, m, d, 0, 0, 0, 0, time.UTC) // normalised, as a number of days
	if wallDay(t).Before(date) && !to.IsZero() {
		return At(to) // midnight was skipped: the day starts where the clock jumped
	}
	if !from.IsZero() {
		_, offset := t.Zone()
		_, before := from.Add(-1).Zone()
		if earlier := t.Add(time.Duration(offset-before) * time.Second); earlier.Before(from) && wallDay(earlier).Equal(date) {
			return At(earlier)
		}
		if t.After(from) && wallDay(from).Equal(date) {
			return At(from) // time.Date went past the jump
		}
	}
	return At(t)
}

// wallDay returns the date of t in its zone, as midnight UTC.
func wallDay(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

func describePeriod(_ string, w *Window) string {
	s := w.Period.String() + " " + w.zoneName()
	if w.Anchor > 1 {
		s += fmt.Sprintf(" from day %d", w.Anchor)
	}
	return s
}

func idOfPeriod(w *Window) string {
	id := w.Period.String() + "/" + w.zoneName()
	if w.Anchor > 1 {
		id += fmt.Sprintf("/%d", w.Anchor)
	}
	return id
}

func (w *Window) zoneName() string {
	if w.Zone == nil {
		return "UTC"
	}
	return w.Zone.String()
}

// Aligned windows are calendar windows whose periods follow each other from the
// Unix epoch on, all of one length. They have the state and the algorithm of
// calendar windows, and follow the wall clock, too.

// leastAligned is the shortest aligned window. A store over the network is told
// the periods around the instant at which it will decide, so that instant must be
// known well enough.
const leastAligned = time.Second

// alignedBounds returns the start and the end of the period of w that contains
// now.
func (w *Window) alignedBounds(now Instant) (start, end Instant) {
	length := w.micros()
	start = Instant(floorDiv(int64(now), length) * length)
	return start, start + Instant(length)
}
