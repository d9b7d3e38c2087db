package rulefile

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/weirhq/weir/window"
)

// durationPart matches a number and its unit.
var durationPart = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)(us|µs|ms|s|m|h|d|w)`)

// lengthOf has the lengths of the calendar's windows that always have the same one.
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
