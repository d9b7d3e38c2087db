package page

import (
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
)

// count returns a number with a thin space between each three digits.
func count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "\u202f" + text[at:]
	}
	return text
}

// compact returns a number with k, M or G for thousands, millions and so on where
// nothing is lost.
func compact(n int64) string {
	switch {
	case n < 10_000 || n%1e3 != 0:
		return count(n)
	case n%1e6 != 0:
		return count(n/1e3) + "k"
	case n%1e9 != 0:
		return count(n/1e6) + "M"
	}
	return count(n/1e9) + "G"
}

// percent returns part of all in percent.
func percent(part, all int64) string {
	if all == 0 {
		return share(0)
	}
	return share(float64(part) / float64(all))
}

// share returns a share in percent.
func share(of float64) string {
	if of > 0 && of < 0.0001 {
		return "< 0.01 %"
	}
	text := strconv.FormatFloat(100*of, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + " %"
}

// moment returns a time in UTC. It accepts a time and a pointer to one.
func moment(t any) string {
	at, ok := t.(time.Time)
	if p, isPointer := t.(*time.Time); isPointer && p != nil {
		at, ok = *p, true
	}
	if !ok || at.IsZero() {
		return "–"
	}
	return at.UTC().Format(time.DateTime)
}

// short returns the start of a long text, with control characters made visible.
func short(text string) string {
	text = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '\ufffd'
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > 120 {
		return string(runes[:120]) + "…"
	}
	return text
}

// length returns a number of seconds in words.
func length(seconds int64) string {
	for _, u := range []struct {
		seconds int64
		name    string
	}{{24 * 3600, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}} {
		if n := seconds / u.seconds; seconds%u.seconds == 0 {
			if n == 1 {
				return "1 " + u.name
			}
			return strconv.FormatInt(n, 10) + " " + u.name + "s"
		}
	}
	return ""
}

// heat is a table of hours by days.
type heat struct {
	Title string
	Hours []string // the heads of the columns
	Days  []heatDay
	Most  int64 // the largest number
}

type heatDay struct {
	Name  string
	Cells []int64
}

// maxDays is the most days of a heat map. Of a longer log, the last ones are shown.
const maxDays = 62

// heat adds a heat map of the denied requests of t, or of all.
func (d *document) heat(title string, t *replay.Timeline, denied bool) {
	if t == nil || t.Seconds != 3600 {
		return
	}
	h := heat{Title: title}
	for hour := range 24 {
		h.Hours = append(h.Hours, strconv.Itoa(hour))
	}
	for i := range t.Denied {
		at := t.Start.Add(time.Duration(i) * time.Hour)
		name := at.Format("Mon 2006-01-02")
		if n := len(h.Days); n == 0 || h.Days[n-1].Name != name {
			h.Days = append(h.Days, heatDay{name, make([]int64, 24)})
		}
		n := t.Denied[i]
		if !denied {
			n += t.Allowed[i]
		}
		h.Days[len(h.Days)-1].Cells[at.Hour()] = n
		h.Most = max(h.Most, n)
	}
	h.Days = h.Days[max(0, len(h.Days)-maxDays):]
	d.Heats = append(d.Heats, h)
}

// level returns a class for a number: 0 for none, 1 to 6 by its share of the
// largest one.
func level(n, most int64) int64 {
	if n == 0 {
		return 0
	}
	return 1 + (n*6-1)/most
}
