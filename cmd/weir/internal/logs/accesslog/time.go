package accesslog

import "github.com/weirhq/weir/window"

const (
	timeForm   = "[day/month/year:hour:minute:second zone]"
	timeLength = len("02/Jan/2006:15:04:05 -0700")
)

// minute is the minute of a time that was parsed. Most lines of a log are in the minute
// of the line before: then only the seconds are parsed, in a tenth of the time.
type minute struct {
	text  [timeLength]byte // with the seconds of that time
	start window.Instant
	known bool
}

// Where a time has its seconds.
const secondAt, secondEnd = len("02/Jan/2006:15:04:"), len("02/Jan/2006:15:04:05")

// time does what parseTime does.
func (m *minute) time(s string) (window.Instant, bool) {
	if m.known && s[:secondAt] == string(m.text[:secondAt]) && s[secondEnd:] == string(m.text[secondEnd:]) {
		second := number(s[secondAt:secondEnd])
		return m.start + window.Instant(second)*1e6, within(second, 60)
	}
	at, ok := parseTime(s)
	if ok {
		copy(m.text[:], s)
		m.start, m.known = at-window.Instant(number(s[secondAt:secondEnd]))*1e6, true
	}
	return at, ok
}

// parseTime parses a time such as 20/Feb/2016:00:00:45 -0500. Package time would
// take about ten times as long.
func parseTime(s string) (window.Instant, bool) {
	if s[2] != '/' || s[6] != '/' || s[11] != ':' || s[14] != ':' || s[17] != ':' || s[20] != ' ' {
		return 0, false
	}
	var (
		month    = monthOf(s[3:6])
		year     = number(s[7:11])
		day      = number(s[0:2])
		hour     = number(s[12:14])
		minute   = number(s[15:17])
		second   = number(s[18:20])
		zoneHour = number(s[22:24])
		zoneMin  = number(s[24:26])
		inRange  = month > 0 && year >= 1970 && day >= 1 && day <= daysIn(year, month) &&
			within(hour, 23) && within(minute, 59) && within(second, 60) && // 60: a leap second
			within(zoneHour, 23) && within(zoneMin, 59)
	)
	if !inRange {
		return 0, false
	}

	zone := zoneHour*60 + zoneMin
	switch s[21] {
	case '+':
	case '-':
		zone = -zone
	default:
		return 0, false
	}
	seconds := ((daysBefore(year, month)+day-1)*24+hour)*3600 + (minute-zone)*60 + second
	return window.Instant(seconds) * 1e6, true
}

func within(n, most int) bool { return n >= 0 && n <= most }

// number returns the value of the digits s, or -1 if s has other characters.
func number(s string) int {
	n := 0
	for i := range len(s) {
		c := s[i] - '0'
		if c > 9 {
			return -1
		}
		n = n*10 + int(c)
	}
	return n
}

const months = "JanFebMarAprMayJunJulAugSepOctNovDec"

// monthOf returns 1 for Jan to 12 for Dec, and 0 for anything else.
func monthOf(s string) int {
	for m := 0; m < len(months); m += 3 {
		if months[m:m+3] == s {
			return m/3 + 1
		}
	}
	return 0
}

// monthStart has the days of a common year before each month.
var monthStart = [...]int{0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365}

func daysIn(year, month int) int {
	days := monthStart[month] - monthStart[month-1]
	if month == 2 && isLeap(year) {
		days++
	}
	return days
}

// daysBefore returns the days from the start of 1970 to the start of the month.
func daysBefore(year, month int) int {
	past := year - 1
	days := 365*(year-1970) + past/4 - past/100 + past/400 - 477 + monthStart[month-1]
	if month > 2 && isLeap(year) {
		days++
	}
	return days
}

func isLeap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }
