package rulefile

import (
	"regexp"
	"strconv"
	"time"
)

// dateForm is the form of dates in faults.
const dateForm = "2006-01-02T15:04:05"

// dateForms lists the accepted forms of a date and time. Those without a zone
// are in the zone of the case.
var dateForms = []string{
	"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04Z07:00",
	"2006-01-02T15:04:05.999999999", "2006-01-02T15:04",
	"2006-01-02 15:04:05.999999999", "2006-01-02 15:04", "2006-01-02",
}

// date reads a date and time.
func (t *testPass) date(n *node, zone *time.Location) (time.Time, bool) {
	for _, form := range dateForms {
		if at, err := time.ParseInLocation(form, n.text, zone); err == nil {
			at = at.In(zone)
			if at.Year() < 1970 || at.Year() > 2200 || at.Nanosecond()%1000 != 0 {
				t.fault(n, "%s is %s: want a time from 1970 to 2200, in whole microseconds", n.label, n.text)
				return at, false
			}
			return at, true
		}
	}
	t.fault(n, "%s is %s, want a date and time, such as 2026-03-01T12:00 or 2026-03-01T12:00:00Z", n.label, n)
	return time.Time{}, false
}

// zero matches a length of time that is none.
var zero = regexp.MustCompile(`^0+(us|µs|ms|s|m|h|d|w)?$`)

// lengthOrZero reads a length of time, which can be 0.
func (t *testPass) lengthOrZero(n *node, words []string) time.Duration {
	if zero.MatchString(n.text) {
		return 0
	}
	return t.duration(n, words)
}

// periodsLater matches a number of periods of the calendar.
var periodsLater = regexp.MustCompile(`^(?:([0-9]{1,4}) )?(minute|hour|day|week|month|year)s?$`)

// later reads a wait, and returns the time after it.
func (t *testPass) later(n *node) time.Time {
	part := periodsLater.FindStringSubmatch(n.text)
	if part == nil {
		return t.now.Add(t.lengthOrZero(n, periods))
	}
	count := 1
	if part[1] != "" {
		count, _ = strconv.Atoi(part[1]) // four digits at most
	}
	switch part[2] {
	case "minute":
		return t.now.Add(time.Duration(count) * time.Minute)
	case "hour":
		return t.now.Add(time.Duration(count) * time.Hour)
	case "day":
		return t.now.AddDate(0, 0, count)
	case "week":
		return t.now.AddDate(0, 0, 7*count)
	case "month":
		return addMonths(t.now, count)
	}
	return addMonths(t.now, 12*count)
}

// addMonths returns the same day and time in a later month, or the last day of
// the month if it is shorter.
func addMonths(at time.Time, months int) time.Time {
	year, month, day := at.Date()
	last := time.Date(year, month+time.Month(months)+1, 0, 0, 0, 0, 0, at.Location()).Day()
	hour, minute, second := at.Clock()
	return time.Date(year, month+time.Month(months), min(day, last), hour, minute, second, at.Nanosecond(), at.Location())
}
