package window_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/window"
)

// restless are zones and the times at which their clocks were or will be set.
var restless = []struct{ zone, from, to string }{
	{"UTC", "2027-12-20", "2028-03-10"},
	{"Europe/Berlin", "2026-03-20", "2026-11-10"},       // 23 and 25 hours
	{"America/New_York", "2026-02-25", "2026-11-10"},    // 23 and 25 hours
	{"Australia/Lord_Howe", "2026-03-20", "2026-10-20"}, // half an hour
	{"America/Sao_Paulo", "2018-02-01", "2018-11-15"},   // a day without a midnight
	{"Asia/Beirut", "2022-03-10", "2022-11-10"},         // forward at midnight, back at midnight
	{"America/Havana", "2026-03-01", "2026-11-10"},      // a day with two midnights
	{"Atlantic/Azores", "2026-03-20", "2026-11-01"},     // the same, east of it
	{"Africa/Cairo", "2024-04-10", "2024-11-10"},        // forward at a Friday's midnight
	{"Pacific/Apia", "2011-09-01", "2012-04-20"},        // 30 December 2011 never was
	{"Asia/Pyongyang", "2015-08-01", "2018-05-20"},      // half hours at midnight
	{"America/St_Johns", "2010-03-01", "2010-11-20"},    // back over midnight at 00:01
	{"Asia/Kathmandu", "2026-01-01", "2026-02-01"},      // 5:45
	{"Europe/Berlin", "2044-12-20", "2045-01-10"},       // beyond the table of transitions
}

// dateLabel returns a number for the period of the local date at t.
func dateLabel(w window.Window, t time.Time) int64 {
	y, m, d := t.Date()
	day := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400
	anchor := max(w.Anchor, 1)
	switch w.Period {
	case window.Week: // day 0 was a Thursday, so Mondays are 4, 11, …
		return (day - 3 - int64(anchor)) / 7
	case window.Month:
		last := time.Date(y, m+1, 0, 0, 0, 0, 0, time.UTC).Day()
		label := int64(y)*12 + int64(m)
		if d < min(anchor, last) {
			label--
		}
		return label
	case window.Year:
		return int64(y)
	}
	return day
}

// starts returns the instants in [from, to) at which a period starts. It reads
// the wall clock at every step. A date that has begun goes on where the clock is
// set back over midnight.
func starts(w window.Window, from, to time.Time, step time.Duration) (at []window.Instant) {
	label := dateLabel(w, from)
	for t := from; t.Before(to); t = t.Add(step) {
		if next := dateLabel(w, t); next > label {
			label = next
			at = append(at, window.At(t))
		}
	}
	return at
}

// clockStarts is starts for minutes and hours: they start where the wall clock
// shows a new one, or is set.
func clockStarts(unit time.Duration, from, to time.Time) (at []window.Instant) {
	show := func(t time.Time) string {
		_, offset := t.Zone()
		wall := t.Add(time.Duration(offset) * time.Second).UTC().Truncate(unit)
		return fmt.Sprint(wall, offset)
	}
	shown := show(from)
	for t := from; t.Before(to); t = t.Add(time.Minute) {
		if now := show(t); now != shown {
			shown = now
			at = append(at, window.At(t))
		}
	}
	return at
}

// wantPeriods checks both sides of every start, and random instants in between.
func wantPeriods(t *testing.T, w window.Window, at []window.Instant) {
	t.Helper()
	if len(at) < 2 {
		t.Fatalf("%s: got %d starts, want some", w, len(at))
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for i, from := range at[:len(at)-1] {
		to := at[i+1]
		early := min(to-from, window.Instant(time.Hour/time.Microsecond)) // clocks are set around midnight
		for _, now := range []window.Instant{
			from, from + 1, from + early/30, from + early/2, from + window.Instant(rnd.Int64N(int64(early))),
			from + window.Instant(rnd.Int64N(int64(to-from))), to - 1,
		} {
			gotFrom, gotTo := w.PeriodBounds(now)
			if gotFrom != from || gotTo != to {
				t.Fatalf("%s at %v:\ngot  %v to %v\nwant %v to %v", w, now.Time().In(w.Zone),
					gotFrom.Time().In(w.Zone), gotTo.Time().In(w.Zone), from.Time().In(w.Zone), to.Time().In(w.Zone))
			}
			l := window.MustCompile(window.Limit{Quota: 1, Window: w})
			if _, r := l.Take(nil, now, window.Hits{N: 1}); r.ResetAfter != to.Sub(now) {
				t.Fatalf("%s at %v: got reset after %v, want %v", w, now.Time(), r.ResetAfter, to.Sub(now))
			}
		}
	}
}

func TestCalendarPeriods(t *testing.T) {
	t.Parallel()
	for _, tc := range restless {
		t.Run(tc.zone+"/"+tc.from, func(t *testing.T) {
			t.Parallel()
			zone := mustZone(t, tc.zone)
			date := func(text string) time.Time {
				d, err := time.ParseInLocation(time.DateOnly, text, zone)
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			from, to := date(tc.from), date(tc.to)
			wantPeriods(t, window.Calendar(window.Day, zone), starts(window.Calendar(window.Day, zone), from, to, time.Minute))
			for d := from; d.Before(to); d = d.Add(24 * time.Hour) {
				_, before := d.Zone()
				if _, after := d.Add(24 * time.Hour).Zone(); before != after { // the clock is set today
					wantPeriods(t, window.Calendar(window.Hour, zone), clockStarts(time.Hour, d.Add(-6*time.Hour), d.Add(30*time.Hour)))
					wantPeriods(t, window.Calendar(window.Minute, zone), clockStarts(time.Minute, d, d.Add(4*time.Hour)))
				}
			}
			if tc.zone == "America/St_Johns" {
				return // 00:01 is not on the steps below
			}
			from, to = from.AddDate(0, -4, 0), to.AddDate(0, 4, 0)
			for anchor := range 8 {
				w := window.Calendar(window.Week, zone)
				w.Anchor = anchor
				wantPeriods(t, w, starts(w, from, to, 30*time.Minute))
			}
			for _, anchor := range []int{0, 1, 2, 15, 28, 29, 30, 31} {
				w := window.Calendar(window.Month, zone)
				w.Anchor = anchor
				wantPeriods(t, w, starts(w, from, to, 30*time.Minute))
			}
			w := window.Calendar(window.Year, zone)
			wantPeriods(t, w, starts(w, from.AddDate(-2, 0, 0), to.AddDate(2, 0, 0), 30*time.Minute))
		})
	}
}

// For every zone and instant: start ≤ now < end, and all of a period has the
// same bounds, so that periods touch.
func TestCalendarLaws(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(2, 2))
	for range 20_000 {
		w := window.Calendar(window.Period(1+rnd.IntN(6)), mustZone(t, restless[rnd.IntN(len(restless))].zone))
		switch w.Period {
		case window.Week:
			w.Anchor = rnd.IntN(8)
		case window.Month:
			w.Anchor = rnd.IntN(32)
		}
		now := window.Instant(rnd.Int64N(100*365*86400) * 1e6)
		start, end := w.PeriodBounds(now)
		if start > now || now >= end {
			t.Fatalf("%s: got %v to %v for %v", w, start.Time(), end.Time(), now.Time())
		}
		for _, at := range []window.Instant{start, start + window.Instant(rnd.Int64N(int64(end-start))), end - 1} {
			if s, e := w.PeriodBounds(at); s != start || e != end {
				t.Fatalf("%s: got %v to %v for %v,\nwant %v to %v as for %v in %s", w, s.Time(), e.Time(), at.Time(), start.Time(), end.Time(), now.Time(), w.Zone)
			}
		}
		if next, _ := w.PeriodBounds(end); next != end {
			t.Fatalf("%s: got the next period from %v, want from %v", w, next.Time(), end.Time())
		}
	}
}

// Fixed and calendar windows are equal to their model, here a day in Berlin
// around both changes of the clock.
func TestCalendarIsExact(t *testing.T) {
	t.Parallel()
	for _, period := range []window.Period{window.Minute, window.Hour, window.Day, window.Week, window.Month} {
		for _, quota := range []int64{0, 1, 10, 1000, window.Unlimited} {
			w := window.Calendar(period, mustZone(t, "Europe/Berlin"))
			l := window.MustCompile(window.Limit{Quota: quota, Window: w})
			for _, shape := range shapes {
				rnd := rand.New(rand.NewPCG(uint64(period), uint64(quota)))
				tr := traffic{shape: shape, verbs: anyVerb, length: 6 * time.Hour, most: max(1, quota+1)}
				agree(t, l, &span{period: w.PeriodBounds}, tr.calls(rnd, 400))
			}
		}
	}
}

// The scripts give the same results whatever zone the host is in.
func TestHostZone(t *testing.T) {
	t.Parallel()
	const inside = "WEIR_TEST_HOST_ZONE"
	if zone := os.Getenv(inside); zone != "" {
		at := time.Unix(1e9, 0)
		if got, want := at.Format(time.RFC3339), at.In(mustZone(t, zone)).Format(time.RFC3339); got != want {
			t.Fatalf("got %s on the host's wall, want %s", got, want)
		}
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, zone := range []string{"UTC", "America/Los_Angeles", "Pacific/Kiritimati"} {
		child := exec.Command(self, "-test.run=^(TestHostZone|TestScripts)$", "-test.v")
		child.Env = append(os.Environ(), "TZ="+zone, inside+"="+zone)
		out, err := child.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "PASS: TestScripts/calendar") {
			t.Errorf("on a host in %s: %v\n%s", zone, err, out)
		}
	}
}

// aligned is the model of an aligned window: it counts lengths from the epoch.
func aligned(length time.Duration) *span {
	return &span{period: func(now window.Instant) (from, to window.Instant) {
		whole := now.Time().Sub(time.Unix(0, 0)) / length
		if now < 0 {
			whole--
		}
		return window.At(time.Unix(0, 0).Add(whole * length)), window.At(time.Unix(0, 0).Add((whole + 1) * length))
	}}
}

func TestAlignedIsExact(t *testing.T) {
	t.Parallel()
	for _, quota := range []int64{0, 1, 2, 10, 1000, window.Unlimited} {
		for _, shape := range shapes {
			t.Run(fmt.Sprintf("quota=%d/%s", quota, shape), func(t *testing.T) {
				t.Parallel()
				rnd := rand.New(rand.NewPCG(1, uint64(quota)))
				for _, length := range []time.Duration{time.Second, time.Hour, 30 * 24 * time.Hour} {
					l := window.MustCompile(window.Limit{Quota: quota, Window: window.Aligned(length)})
					tr := traffic{shape: shape, verbs: anyVerb, length: length, most: max(1, quota+1)}
					agree(t, l, aligned(length), tr.calls(rnd, 1500))
				}
			})
		}
	}
}

// The windows of a week begin on Thursdays, because 1 January 1970 was one.
func TestAlignedPeriods(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	now := window.At(time.Date(2026, 11, 20, 10, 43, 32, 0, time.UTC))
	for length, want := range map[time.Duration][2]string{
		time.Second: {"2026-11-20T10:43:32Z", "2026-11-20T10:43:33Z"},
		time.Hour:   {"2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z"},
		day:         {"2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"},
		7 * day:     {"2026-11-19T00:00:00Z", "2026-11-26T00:00:00Z"},
		30 * day:    {"2026-11-03T00:00:00Z", "2026-12-03T00:00:00Z"},
		365 * day:   {"2025-12-18T00:00:00Z", "2026-12-18T00:00:00Z"},
	} {
		w := window.Aligned(length)
		from, to := w.PeriodBounds(now)
		if got := [2]string{from.Time().Format(time.RFC3339), to.Time().Format(time.RFC3339)}; got != want {
			t.Errorf("%s: got %v, want %v", w, got, want)
		}
	}
	if from, to := window.Aligned(day).PeriodBounds(-1); from != window.At(time.Unix(-86400, 0)) || to != 0 {
		t.Errorf("before the epoch: got %d to %d, want the day before it", from, to)
	}
}
