package window_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/window"
)

func TestValidateNamesTheField(t *testing.T) {
	t.Parallel()
	hour := window.Sliding(time.Hour)
	for _, tc := range []struct {
		name  string
		limit window.Limit
		field string
	}{
		{"the zero value", window.Limit{}, "window.length"},
		{"a negative quota", window.Limit{Quota: -2, Window: hour}, "quota"},
		{"a quota of 2^53", window.Limit{Quota: window.MaxHits + 1, Window: hour}, "quota"},
		{"a sliding counter", window.Limit{Quota: window.Unlimited, Window: hour}, "quota"},
		{"a bucket counter", window.Limit{Quota: window.Unlimited, Window: window.Bucket(time.Hour, 1)}, "quota"},
		{"a counter of members", window.Limit{Quota: window.Unlimited, Measure: window.Distinct, Window: window.Fixed(time.Hour)}, "quota"},
		{"too many members", window.Limit{Quota: window.MaxEntries + 1, Measure: window.Distinct, Window: hour}, "quota"},
		{"an unknown measure", window.Limit{Quota: 1, Measure: 3, Window: hour}, "measure"},
		{"members in cells", window.Limit{Quota: 1, Measure: window.Distinct, Window: window.Cells(time.Hour, 0)}, "measure"},
		{"members in a bucket", window.Limit{Quota: 1, Measure: window.Distinct, Window: window.Bucket(time.Hour, 0)}, "measure"},
		{"an unknown kind", window.Limit{Quota: 1, Window: window.Window{Kind: 99, Length: time.Hour}}, "window.kind"},
		{"no length", window.Limit{Quota: 1, Window: window.Fixed(0)}, "window.length"},
		{"a negative length", window.Limit{Quota: 1, Window: window.Fixed(-time.Second)}, "window.length"},
		{"half a microsecond", window.Limit{Quota: 1, Window: window.Sliding(500)}, "window.length"},
		{"a microsecond and a half", window.Limit{Quota: 1, Window: window.Sliding(1500)}, "window.length"},
		{"101 years", window.Limit{Quota: 1, Window: window.Sliding(window.MaxLength + time.Hour)}, "window.length"},
		{"a calendar with a length", window.Limit{Quota: 1, Window: window.Window{Kind: window.KindCalendar, Period: window.Day, Length: 1}}, "window.length"},
		{"a negative precision", window.Limit{Quota: 1, Window: window.Window{Length: time.Hour, Precision: -1}}, "window.precision"},
		{"a huge precision", window.Limit{Quota: 1, Window: window.Window{Length: time.Hour, Precision: window.MaxEntries + 1}}, "window.precision"},
		{"a fixed window with precision", window.Limit{Quota: 1, Window: window.Window{Kind: window.KindFixed, Length: time.Hour, Precision: 5}}, "window.precision"},
		{"negative cells", window.Limit{Quota: 1, Window: window.Cells(time.Hour, -1)}, "window.n"},
		{"too many cells", window.Limit{Quota: 1, Window: window.Cells(time.Hour, window.MaxEntries+1)}, "window.n"},
		{"cells below a microsecond", window.Limit{Quota: 1, Window: window.Cells(10*time.Microsecond, 11)}, "window.n"},
		{"a sliding window with cells", window.Limit{Quota: 1, Window: window.Window{Length: time.Hour, N: 5}}, "window.n"},
		{"a negative burst", window.Limit{Quota: 1, Window: window.Bucket(time.Hour, -1)}, "window.burst"},
		{"a burst of 2^53", window.Limit{Quota: 1, Window: window.Bucket(time.Hour, window.MaxHits+1)}, "window.burst"},
		{"a burst that fills for ages", window.Limit{Quota: 1, Window: window.Bucket(24*time.Hour, 40_000)}, "window.burst"},
		{"a product above 2^53", window.Limit{Quota: 999_983, Window: window.Bucket(24*time.Hour, 999_983)}, "window.burst"},
		{"a sliding window with a burst", window.Limit{Quota: 1, Window: window.Window{Length: time.Hour, Burst: 5}}, "window.burst"},
		{"no period", window.Limit{Quota: 1, Window: window.Calendar(0, nil)}, "window.period"},
		{"an unknown period", window.Limit{Quota: 1, Window: window.Calendar(7, nil)}, "window.period"},
		{"a sliding window with a period", window.Limit{Quota: 1, Window: window.Window{Length: time.Hour, Period: window.Day}}, "window.period"},
		{"an eighth day of the week", window.Limit{Quota: 1, Window: window.Window{Kind: window.KindCalendar, Period: window.Week, Anchor: 8}}, "window.anchor"},
		{"a 32nd of the month", window.Limit{Quota: 1, Window: window.Window{Kind: window.KindCalendar, Period: window.Month, Anchor: 32}}, "window.anchor"},
		{"a negative anchor", window.Limit{Quota: 1, Window: window.Window{Kind: window.KindCalendar, Period: window.Month, Anchor: -1}}, "window.anchor"},
		{"a day with an anchor", window.Limit{Quota: 1, Window: window.Window{Kind: window.KindCalendar, Period: window.Day, Anchor: 2}}, "window.anchor"},
		{"a sliding window with a zone", window.Limit{Quota: 1, Window: window.Window{Length: time.Hour, Zone: time.UTC}}, "window.zone"},
		{"after nothing", window.Limit{Quota: 1, Window: hour, After: window.After{Window: hour}}, "after.count"},
		{"after less than nothing", window.Limit{Quota: 1, Window: hour, After: window.After{Count: -1, Window: hour}}, "after.count"},
		{"after a count in no window", window.Limit{Quota: 1, Window: hour, After: window.After{Count: 3}}, "after.window.length"},
		{"after a bucket", window.Limit{Quota: 1, Window: hour, After: window.After{Count: 3, Window: window.Bucket(time.Hour, 0)}}, "after.window.kind"},
		{"members after a count", window.Limit{Quota: 1, Measure: window.Distinct, Window: hour, After: window.After{Count: 3, Window: hour}}, "after"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			err := tc.limit.Validate()
			if !faulty(err, tc.field) {
				t.Errorf("got %v, want a fault in %s", err, tc.field)
			}
			if !strings.Contains(err.Error(), tc.field+": ") {
				t.Errorf("got %q, want it to name %s", err, tc.field)
			}
		})
	}
}

// faulty reports whether one of the faults in err is about field.
func faulty(err error, field string) bool {
	return slices.ContainsFunc(fault.Of(err), func(f *fault.Fault) bool { return f.Path == field && f.Problem != "" })
}

// Every fault is named at once.
func TestValidateNamesAllFaults(t *testing.T) {
	t.Parallel()
	l := window.Limit{Quota: -7, Measure: 9, Window: window.Window{Kind: window.KindCells, N: -1, Burst: 3}}
	err := l.Validate()
	for _, field := range []string{"quota", "measure", "window.length", "window.n", "window.burst"} {
		if err == nil || !faulty(err, field) {
			t.Errorf("got %v, want a fault in %s", err, field)
		}
	}
}

func TestValidateAccepts(t *testing.T) {
	t.Parallel()
	for _, l := range []window.Limit{
		{Quota: 0, Window: window.Sliding(time.Hour)},
		{Quota: window.MaxHits, Measure: window.Sum, Window: window.Sliding(window.MaxLength)},
		{Quota: 5, Window: window.Sliding(time.Microsecond)},
		{Quota: window.Unlimited, Window: window.Cells(24*time.Hour, 1440)},
		{Quota: window.Unlimited, Measure: window.Sum, Window: window.Calendar(window.Year, nil)},
		{Quota: window.MaxEntries, Measure: window.Distinct, Window: window.Fixed(time.Hour)},
		{Quota: 7, Window: window.Bucket(10*time.Second, 1000)},
		{Quota: 100_000, Measure: window.Sum, Window: window.Bucket(time.Minute, 20_000)},
		{Quota: 1, Window: window.Sliding(2 * time.Second), After: window.After{Count: 30, Window: window.Calendar(window.Day, time.UTC)}},
	} {
		if err := l.Validate(); err != nil {
			t.Errorf("%v: %v", l, err)
		}
	}
}
