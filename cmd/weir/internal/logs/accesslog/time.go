package accesslog

import (
	"strconv"
	"time"

	"github.com/weirhq/weir/window"
)

const (
	timeForm   = "[day/month/year:hour:minute:second zone]"
	timeLayout = "02/Jan/2006:15:04:05 -0700"
	timeLength = len(timeLayout)

	// where a time has its seconds
	secondAt, secondEnd = len("02/Jan/2006:15:04:"), len("02/Jan/2006:15:04:05")
)

// minute is the minute of a time that was parsed. Most lines of a log are in the minute
// of the line before: then only the seconds are parsed, in a tenth of the time.
type minute struct {
	text  [timeLength]byte // with the seconds of that time
	start window.Instant
	known bool
}

// time parses a time of the form timeLayout.
func (m *minute) time(s string) (window.Instant, bool) {
	second, err := strconv.ParseUint(s[secondAt:secondEnd], 10, 8)
	if err != nil || second > 60 { // 60: a leap second
		return 0, false
	}
	if !m.known || s[:secondAt] != string(m.text[:secondAt]) || s[secondEnd:] != string(m.text[secondEnd:]) {
		at, err := time.ParseInLocation(timeLayout, s[:secondAt]+"00"+s[secondEnd:], time.UTC)
		if err != nil || at.Year() < 1970 || at.Month().String()[:3] != s[3:6] { // package time ignores the case of months
			return 0, false
		}
		copy(m.text[:], s)
		m.start, m.known = window.At(at), true
	}
	return m.start + window.Instant(second)*1e6, true
}
