package logs

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/window"
)

// units are the microseconds of a number of each form.
var units = map[string]float64{"unix": 1e6, "unix_ms": 1e3, "unix_us": 1, "unix_ns": 1e-3}

// layouts are the forms of times that are recognised, in the order in which they
// are tried.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04:05.999999999",
	"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999 -0700", "2006-01-02 15:04:05.999999999",
	"02/Jan/2006:15:04:05 -0700", "2006/01/02 15:04:05", time.RFC1123Z, time.RFC1123, time.ANSIC, time.Stamp,
}

func checkTimeFormat(form string) error {
	if _, number := units[form]; number || form == "" {
		return nil
	}
	month := strings.Contains(form, "Jan") || strings.Contains(form, "01")
	if hasYear(form) || month && strings.Contains(form, "2") {
		return nil
	}
	return fmt.Errorf("%q: want unix, unix_ms, unix_us, unix_ns, or a layout with the time 2006-01-02 15:04:05", form)
}

// hasYear reports whether a layout has a year.
func hasYear(layout string) bool { return strings.Contains(layout, "06") }

// timeReader reads times of one log.
type timeReader struct {
	form string // as Spec.TimeFormat
	zone *time.Location
	last string // the layout of the last time

	year   int       // of the next time without one, or 0
	before time.Time // the last time that was read by a layout
}

// read returns the instant of a time.
func (r *timeReader) read(text string) (window.Instant, error) {
	unit, isNumber := units[r.form]
	switch {
	case isNumber:
		return number(text, unit)
	case r.form != "":
		return r.parse(text, r.form)
	}
	if r.last != "" {
		if at, err := r.parse(text, r.last); err == nil {
			return at, nil
		}
	}
	if c := text[0]; c >= '0' && c <= '9' && !strings.ContainsAny(text, "-/:") {
		return number(text, 0)
	}
	for _, layout := range layouts {
		at, err := r.parse(text, layout)
		if err == nil {
			r.last = layout
			return at, nil
		}
		if errors.Is(err, errNoLeapDay) {
			return 0, err
		}
	}
	return 0, fmt.Errorf("%q is not a time in a known form: state its form with --time-format", shorten(text))
}

func (r *timeReader) parse(text, layout string) (window.Instant, error) {
	zone := r.zone
	if zone == nil {
		zone = time.UTC
	}
	at, err := time.ParseInLocation(layout, text, zone)
	if err != nil {
		return 0, fmt.Errorf("%q is not of the form %s", shorten(text), layout)
	}
	if !hasYear(layout) {
		if at, err = r.withYear(at); err != nil {
			return 0, fmt.Errorf("%q: %w", shorten(text), err)
		}
	}
	if year := at.Year(); year < 1970 || year > 2250 {
		return 0, fmt.Errorf("%q is not between 1970 and 2250", shorten(text))
	}
	if r.zone != nil && !strings.Contains(layout, "07") && !strings.Contains(layout, "MST") {
		at = r.inOrder(at)
	}
	r.before = at
	return window.At(at), nil
}

// inOrder returns the instant that a local time most likely means. In the hour that occurs twice when summer time ends it
// is the earlier one, unless that is behind the time before by more than a quarter of the hour: logs are nearly in order.
func (r *timeReader) inOrder(at time.Time) time.Time {
	_, offset := at.Zone()
	for _, days := range []int{-1, 1} {
		_, o := at.AddDate(0, 0, days).Zone()
		other := at.Add(time.Duration(offset-o) * time.Second) // the same on the clock, if o is its offset
		if _, its := other.Zone(); its != o || o == offset {
			continue
		}
		first, second := at, other
		if other.Before(at) {
			first, second = other, at
		}
		if !r.before.IsZero() && r.before.Sub(first) > second.Sub(first)/4 {
			return second
		}
		return first
	}
	return at
}

var errNoLeapDay = errors.New("has no 29 February")

// withYear returns a time, of the year 0, in the year that it most likely has: the one nearest to
// the time before, because logs are nearly in order. The first time of a log is in the stated year or
// in the latest one in which it is not in the future.
func (r *timeReader) withYear(at time.Time) (time.Time, error) {
	in := func(year int) time.Time {
		return time.Date(year, at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), at.Location())
	}
	if r.year == 0 {
		future := time.Now().AddDate(0, 0, 1) // clocks and zones differ
		for r.year = future.Year(); in(r.year).After(future) || in(r.year).Day() != at.Day(); r.year-- {
		}
	}
	const half = 183 * 24 * time.Hour
	year := r.year
	if !r.before.IsZero() {
		switch since := in(year).Sub(r.before); {
		case since < -half:
			year++
		case since > half:
			year--
		}
	}
	if in(year).Day() != at.Day() {
		return at, fmt.Errorf("%d %w: state the year of the first line with --year", year, errNoLeapDay)
	}
	r.year = year
	return in(year), nil
}

// number returns the instant of a number since the epoch. With a unit of 0, the
// size of the number tells its unit.
func number(text string, unit float64) (window.Instant, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || n < 0 {
		return 0, fmt.Errorf("%q is not a number since 1970", shorten(text))
	}
	if unit == 0 {
		switch { // each form means a time from 1973 to 5138
		case n < 1e11:
			unit = units["unix"]
		case n < 1e14:
			unit = units["unix_ms"]
		case n < 1e17:
			unit = units["unix_us"]
		default:
			unit = units["unix_ns"]
		}
	}
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil { // a float64 has 53 bits
		return instant(whole, unit, text)
	}
	micros := n * unit
	if micros > 8.8e15 {
		return 0, fmt.Errorf("%q is not between 1970 and 2250", shorten(text))
	}
	return window.Instant(math.Round(micros)), nil
}

func instant(n int64, unit float64, text string) (window.Instant, error) {
	if unit < 1 {
		n /= int64(1 / unit)
		unit = 1
	}
	if n > int64(8.8e15/unit) {
		return 0, fmt.Errorf("%q is not between 1970 and 2250", shorten(text))
	}
	return window.Instant(n * int64(unit)), nil
}

// shorten returns the start of a long text.
func shorten(text string) string {
	if len(text) > 60 {
		return strings.ToValidUTF8(text[:60], "") + "…"
	}
	return text
}
