package replay_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
)

// TestPeaksAreThoseOfSuggest compares the peaks of a replay with those that Suggest
// measures without a bound, for each kind of window and measure. Peaks do not depend
// on what limits deny, on conditions or on bans.
func TestPeaksAreThoseOfSuggest(t *testing.T) {
	t.Parallel()
	source := replay.Logs{Files: []replay.Log{text("visits", visits())}}
	for _, rule := range []string{
		"limit: 5, window: 1m", "limit: 100, window: 1h", "limit: 20, window: {fixed: 5m}", "limit: 40, window: day, timezone: Europe/Berlin",
		"limit: 9, window: {cells: 1h, n: 12}", "limit: 3, window: {bucket: 1m}", "distinct: path, limit: 10, window: 1h",
		"sum: bytes, limit: 20000, window: {fixed: 1m}", "limit: 5, window: 1m, ban: {for: 1h}", "limit: 5, window: 1m, after: {count: 3, window: 1h}",
		"limit: 5, window: 1m, count_denied: true, mode: shadow", "limit: 5, window: 1m, hold: 5m", "limit: 0, window: 1m",
	} {
		rules := scripttest.Rules(t, "rules: [{name: it, per: [ip], "+rule+"}, {name: other, limit: 1, window: 1h}]")
		r, err := replay.Run(t.Context(), rules, source, replay.WithPeaks())
		if err != nil {
			t.Fatal(err)
		}
		got := r.Rules[0].Peaks
		if !slices.Contains(got.Bounds, got.Quota) && got.Quota > 0 || got.Percent || r.Rules[1].Peaks == nil {
			t.Errorf("%s: got %+v, want a bound at the quota", rule, got)
		}
		bounds := got.Bounds[:min(len(got.Bounds), 64)]
		s, err := replay.Suggest(t.Context(), rules, replay.Sweep{Rule: "it", Quotas: bounds}, source)
		if err != nil {
			t.Fatal(err)
		}
		want := s.Windows[0].Peaks
		above := int64(0)
		if n := len(bounds); len(want.Keys) > n {
			above = want.Keys[n]
			want.Keys = want.Keys[:n]
		}
		if !slices.Equal(got.Keys, want.Keys) || got.Above != above {
			t.Errorf("%s: got %v and %d above, want %v and %d, up to %v", rule, got.Keys, got.Above, want.Keys, above, bounds)
		}
	}
}

// TestPeaks shows the peaks of limits that depend on an attribute, of limits behind a
// verdict, and of an edit.
func TestPeaks(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for key, n := range []int{1, 4, 8, 25, 60, 600} {
		for i := range n {
			fmt.Fprintf(&log, "10.0.0.%d - - [01/Mar/2026:12:%02d:%02d +0000] \"GET /%d HTTP/1.1\" 200 1\n", key, i/60, i%60, key%2)
		}
	}
	source := replay.Logs{Files: []replay.Log{text("log", log.String())}}
	old := scripttest.Rules(t, `rules:
  - {name: friend, when: {ip: 10.0.0.5}, then: allow}
  - {name: gone, per: [path], limit: 100, window: 1h}
  - {name: by, per: [ip], limit: {by: path, /0: 8, else: 5}, window: 1h}
  - {name: it, per: [ip], limit: 8, window: 1h}
  - {name: of, per: [ip], limit: {of: status, most: 50}, window: 1h}`)
	edited := scripttest.Rules(t, `rules:
  - {name: it, per: [ip], limit: 50, window: 1h}
  - {name: off, per: [ip], limit: 1, window: 1h, mode: off}`)
	r, err := replay.Run(t.Context(), old, source, replay.WithPeaks())
	if err != nil {
		t.Fatal(err)
	}
	c, err := replay.Compare(t.Context(), old, edited, source, replay.WithPeaks())
	if err != nil {
		t.Fatal(err)
	}
	if r.Rules[0].Peaks != nil || len(c.Peaks) != 4 {
		t.Fatalf("got peaks of a verdict, or %d limits", len(c.Peaks))
	}
	var out strings.Builder
	show := func(name string, d *replay.Distribution) {
		if d == nil {
			fmt.Fprintf(&out, "%s: none\n", name)
			return
		}
		unit := ""
		if d.Percent {
			unit = " %"
		}
		fmt.Fprintf(&out, "%s: limit %d%s,", name, d.Quota, unit)
		for i, n := range d.Keys {
			if n > 0 {
				fmt.Fprintf(&out, " %d up to %d,", n, d.Bounds[i])
			}
		}
		fmt.Fprintf(&out, " %d above %d\n", d.Above, d.Bounds[len(d.Bounds)-1])
	}
	show("gone", r.Rules[1].Peaks)
	show("by", r.Rules[2].Peaks)
	show("of", r.Rules[4].Peaks)
	for _, p := range c.Peaks {
		show(p.Rule+" old", p.Old)
		show(p.Rule+" new", p.New)
	}
	want := `gone: limit 100, 1 up to 30, 1 up to 70, 0 above 1000
by: limit 100 %, 1 up to 20, 2 up to 100, 1 up to 500, 1 up to 1000, 0 above 1000
of: limit 100 %, 1 up to 2, 1 up to 10, 1 up to 20, 1 up to 50, 1 above 100
it old: limit 8, 1 up to 1, 1 up to 5, 1 up to 8, 1 up to 30, 1 up to 70, 0 above 500
it new: limit 50, 1 up to 1, 1 up to 5, 1 up to 8, 1 up to 30, 1 up to 70, 1 above 500
gone old: limit 100, 1 up to 30, 1 up to 70, 0 above 1000
gone new: none
by old: limit 100 %, 1 up to 20, 2 up to 100, 1 up to 500, 1 up to 1000, 0 above 1000
by new: none
of old: limit 100 %, 1 up to 2, 1 up to 10, 1 up to 20, 1 up to 50, 1 above 100
of new: none
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
