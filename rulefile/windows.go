package rulefile

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/window"
)

// windowKeys has a row for each kind of window: its key, the other keys that it allows, and
// the function that reads them. v is the value of the kind's key.
var windowKeys = []struct {
	kind   window.Kind
	others []string
	read   func(p *pass, v *node, f map[string]*node, zone *time.Location) window.Window
}{
	{window.KindSliding, []string{"precision"}, func(p *pass, v *node, f map[string]*node, _ *time.Location) window.Window {
		w := window.Sliding(p.duration(v, nil))
		w.Precision = int(p.whole(f["precision"], 1, window.MaxEntries))
		return w
	}},
	{window.KindCells, []string{"n"}, func(p *pass, v *node, f map[string]*node, _ *time.Location) window.Window {
		return window.Cells(p.duration(v, nil), int(p.whole(f["n"], 1, window.MaxEntries)))
	}},
	{window.KindFixed, nil, lengthOnly(window.Fixed)},
	{window.KindCalendar, []string{"starts"}, func(p *pass, v *node, f map[string]*node, zone *time.Location) window.Window {
		w := window.Calendar(p.period(v), zone)
		w.Anchor = p.anchor(f["starts"], w.Period)
		return w
	}},
	{window.KindAligned, nil, lengthOnly(window.Aligned)},
	{window.KindBucket, []string{"burst"}, func(p *pass, v *node, f map[string]*node, _ *time.Location) window.Window {
		return window.Bucket(p.duration(v, nil), p.whole(f["burst"], 1, window.MaxHits))
	}},
	{window.KindHeld, nil, lengthOnly(window.Held)},
}

// lengthOnly returns a reader of windows that have a length and nothing else.
func lengthOnly(of func(time.Duration) window.Window) func(*pass, *node, map[string]*node, *time.Location) window.Window {
	return func(p *pass, v *node, _ map[string]*node, _ *time.Location) window.Window {
		return of(p.duration(v, nil))
	}
}

var (
	periods  = []string{"minute", "hour", "day", "week", "month", "year"}
	words    = append(slices.Clone(periods), window.KindEver.String()) // instead of a length
	weekdays = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
)

// window reads a window: a duration is a sliding one, a period one of the
// calendar, ever is one without an end, and a table is any other kind.
func (p *pass) window(n *node, zone *time.Location) window.Window {
	switch {
	case n == nil:
		return window.Window{}
	case n.kind == aTable:
		return p.windowTable(n, zone)
	case slices.Contains(periods, n.text):
		return window.Calendar(p.period(n), zone)
	case n.text == window.KindEver.String():
		return window.Ever()
	}
	return window.Sliding(p.duration(n, words))
}

// windowTable reads a window that is written as a table.
func (p *pass) windowTable(n *node, zone *time.Location) window.Window {
	if ever := n.get(window.KindEver.String()); ever != nil && len(n.entries) == 1 {
		p.fault(n, "ever has no settings: write %s: ever", n.label)
		return window.Window{}
	}
	var known, kinds, found []string
	at := 0 // the kind's row
	for i, k := range windowKeys {
		kind := k.kind.String()
		known = append(append(known, kind), k.others...)
		kinds = append(kinds, kind)
		if n.get(kind) != nil {
			at, found = i, append(found, kind)
		}
	}
	before := len(p.faults)
	f := p.fields(n, known)
	if before != len(p.faults) {
		return window.Window{}
	}
	if len(found) != 1 {
		p.fault(n, "%s has %s: want one of %s, such as {sliding: 1h}", n.label, cmp.Or(strings.Join(found, " and "), "no kind"), either(kinds))
		return window.Window{}
	}
	for i, k := range windowKeys {
		for _, key := range k.others {
			if other := f[key]; other != nil && i != at {
				p.fault(other, "%s does not go with %s: it is for %s", key, found[0], k.kind)
				return window.Window{}
			}
		}
	}
	return windowKeys[at].read(p, f[found[0]], f, zone)
}

// period reads a period of the calendar.
func (p *pass) period(n *node) window.Period {
	return window.Period(1 + p.choice(n, periods))
}

// anchor reads the day on which a week or a month starts.
func (p *pass) anchor(n *node, of window.Period) int {
	switch {
	case n == nil:
		return 0
	case of == window.Week:
		return 1 + p.choice(n, weekdays)
	case of == window.Month:
		return int(p.whole(n, 1, 31))
	}
	p.fault(n, "starts does not go with %s: it is for week, as a weekday, and for month, as a day", of)
	return 0
}

// spelled matches a length of time whose unit is written out.
var spelled = regexp.MustCompile(`^([0-9]+) *(s|m|h|d|w)(ec|econd|in|inute|r|our|ay|eek)?s?$`)

// uneven matches a number of months or years.
var uneven = regexp.MustCompile(`^[0-9]+ *(M|mon?|months?|y|yr|years?)$`)

// duration reads a length of time. words are the alternatives that faults name.
func (p *pass) duration(n *node, words []string) time.Duration {
	const harmless = time.Hour
	switch {
	case n == nil:
		return 0
	case n.kind == aNumber:
		p.fault(n, "%s is %s without a unit: write %ss for seconds, or %sm, %sh, %sd", n.label, n.raw, n.raw, n.raw, n.raw, n.raw)
		return harmless
	}
	d, err := ParseDuration(n.text)
	short := spelled.ReplaceAllString(n.text, "$1$2")
	switch {
	case n.kind != aText:
		p.fault(n, "%s is %s, want a length of time, such as 1h", n.label, n)
	case err == nil:
		return d
	case short != n.text:
		p.fault(n, "%s is %q: write %s", n.label, n.text, short)
	case slices.Contains(words, "month") && uneven.MatchString(n.text):
		p.fault(n, "%s is %q: months and years differ in length: write month or year for one of the calendar, or days, such as 30d", n.label, n.text)
	case fault.DidYouMean(n.text, words) != "":
		p.fault(n, "%s", unknown(n.label, n.text, words))
	case len(words) > 0 && !strings.ContainsAny(n.text, "0123456789"):
		p.fault(n, "%s is %q, want a length of time, such as 90s, 1h30m or 7d, or one of %s", n.label, n.text, either(words))
	default:
		p.fault(n, "%s: %v", n.label, err)
	}
	return harmless
}

// durationPart matches a number and its unit.
var durationPart = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)(us|µs|ms|s|m|h|d|w)`)

// lengthOf has the lengths of the calendar windows whose length is constant.
var lengthOf = map[string]string{"minute": "1m", "hour": "1h", "day": "1d", "week": "1w"}

// ParseDuration returns the duration that text states in the syntax of rules
// files: one or more numbers with units, such as 90s, 1h30m, 1.5d or 2w. The units
// are us (or µs), ms, s, m, h, d (24 hours) and w (7 days). The duration must be a
// whole number of microseconds, at least one, and at most [window.MaxLength].
func ParseDuration(text string) (time.Duration, error) {
	var sum time.Duration
	for rest := text; rest != "" || text == ""; {
		part := durationPart.FindStringSubmatch(rest)
		if part == nil {
			problem := fmt.Sprintf("%q is no length of time: want numbers with units, such as 90s, 1h30m, 7d or 2w", text)
			if same := lengthOf[text]; same != "" {
				problem += "; write " + same
			}
			return 0, errors.New(problem)
		}
		rest = rest[len(part[0]):]
		unit, times := part[2], time.Duration(1)
		switch unit {
		case "d":
			unit, times = "h", 24
		case "w":
			unit, times = "h", 7*24
		}
		d, err := time.ParseDuration(part[1] + unit)
		if err != nil || d > window.MaxLength/times || sum+d*times > window.MaxLength {
			return 0, fmt.Errorf("%q is too long: want at most 36500d, a hundred years", text)
		}
		sum += d * times
	}
	if sum < time.Microsecond || sum%time.Microsecond != 0 {
		return 0, fmt.Errorf("%q is too fine: want whole microseconds, at least 1us", text)
	}
	return sum, nil
}
