package replay_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// recording is a source whose requests have verbs, and different numbers of hits.
type recording struct {
	replay.Source
	verbs []replay.Verb
}

type recordingReader struct {
	replay.Reader
	verbs  []replay.Verb
	random *rand.Rand
}

func (r recording) Open(ctx context.Context, names []string) (replay.Reader, error) {
	reader, err := r.Source.Open(ctx, names)
	return &recordingReader{reader, r.verbs, rand.New(rand.NewPCG(3, 4))}, err
}

func (r *recordingReader) Next(e *replay.Entry) error {
	err := r.Reader.Next(e)
	e.Verb = r.verbs[r.random.IntN(len(r.verbs))]
	e.Hits = []int64{0, 1, 1, 1, 2, 10, 300}[r.random.IntN(7)]
	return err
}

// TestSuggestEqualsReplays compares each number of a sweep with that of a replay of
// a file with only this rule, for each kind of window and measure. The log has
// lines out of order. A recording of it has checks and records as well.
func TestSuggestEqualsReplays(t *testing.T) {
	t.Parallel()
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	content := visits()
	log := replay.Logs{Files: []replay.Log{text("visits", content)}}
	quotas := []int64{1, 2, 3, 5, 10, 20, 40, 99, 100, 101, 150, 250, 400, 1000}
	windows := []window.Window{
		window.Sliding(time.Minute), window.Sliding(time.Hour), {Kind: window.KindSliding, Length: 10 * time.Minute, Precision: 7},
		window.Fixed(5 * time.Minute), window.Calendar(window.Day, newYork), window.Calendar(window.Hour, nil),
		window.Cells(time.Hour, 12), window.Bucket(time.Minute, 0), window.Bucket(10*time.Minute, 300),
		window.Aligned(5 * time.Minute),
	}
	some, few := []window.Window{windows[2], windows[4], windows[7]}, []int64{1, 20, 101}
	for _, tc := range []struct {
		name    string
		rule    string
		windows []window.Window
		quotas  []int64
	}{
		{"hits", "", windows, quotas},
		{"some", "when: {method: POST}, ", windows[:3], quotas},
		{"sum", "sum: bytes, ", windows, []int64{1, 1000, 50_000, 100_000, 1_000_000, 10_000_000, 50_000_000, 100_000_000}},
		{"after", "after: {count: 10, window: 10m}, ", some, few},
		{"count denied", "count_denied: true, ", some, few},
		{"ban", "ban: {for: 10m, factor: 2, most: 1h, forget: 2h}, ", some, few},
		{"ban and count denied", "sum: bytes, count_denied: true, ban: {for: 1m}, ", some[:1], []int64{1, 100_000, 1_000_000}},
		{"hold", "hold: 5m, ", []window.Window{windows[2], windows[3], windows[7]}, few},
		{"release", "sum: bytes, hold: 90s, unsettled: release, max_holds: 7, ", some[1:3], []int64{1, 100_000, 1_000_000}},
		{"distinct", "distinct: path, ", []window.Window{windows[0], windows[1], windows[3], windows[4]}, quotas},
	} {
		for _, kind := range []string{"log", "recording"} {
			t.Run(tc.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				tc, source := tc, replay.Source(log)
				if kind == "recording" {
					source = recording{log, []replay.Verb{replay.Take, replay.Take, replay.Take, replay.Check, replay.Record}}
					tc.quotas = slices.DeleteFunc(slices.Clone(tc.quotas), func(q int64) bool { return q > 1 && q < 20 }) // the others take long
				}
				rules := scripttest.Rules(t, "rules: [{name: first, limit: 1, window: 1h}, {name: it, per: [ip], "+tc.rule+"limit: 9, window: 1h}]")
				got, err := replay.Suggest(t.Context(), rules, replay.Sweep{Rule: "it", Windows: tc.windows, Quotas: tc.quotas}, source)
				if err != nil {
					t.Fatal(err)
				}
				denied := int64(0)
				for i, w := range tc.windows {
					for n, q := range tc.quotas {
						one := *rules.Rule(1)
						one.Quota, one.Window = &rule.Quota{Value: q}, w
						set, err := rule.New([]rule.Rule{one}, nil)
						if err != nil {
							t.Fatal(err)
						}
						report, err := replay.Run(t.Context(), set, source)
						if err != nil {
							t.Fatal(err)
						}
						c, want := got.Windows[i].Candidates[n], report.Rules[0]
						if c.Denied != want.Denied || c.KeysDenied != want.KeysDenied || got.Matched != want.Matched || got.Keys != want.Keys {
							t.Errorf("%d in %s: got %d of %d denied, %d of %d keys, want %d of %d, %d of %d", q, got.Windows[i].Window,
								c.Denied, got.Matched, c.KeysDenied, got.Keys, want.Denied, want.Matched, want.KeysDenied, want.Keys)
						}
						denied += c.Denied
					}
				}
				if denied == 0 {
					t.Error("no candidate denies anything")
				}
			})
		}
	}
}

// Records alone say nothing about a quota, because none denies them.
func TestSuggestOnlyRecords(t *testing.T) {
	t.Parallel()
	source := recording{replay.Logs{Files: []replay.Log{text("visits", visits())}}, []replay.Verb{replay.Record}}
	got, err := replay.Suggest(t.Context(), scripttest.Rules(t, "rules: [{name: it, per: [ip], limit: 9, window: 1h}]"), replay.Sweep{Rule: "it"}, source)
	if err != nil {
		t.Fatal(err)
	}
	if w := got.Windows[0]; got.Matched != 0 || got.Keys == 0 || w.Peaks.Max == 0 || w.Suggested != -1 || w.Reason != "Only records match the rule, which no quota denies." {
		t.Errorf("got %d matched, %d keys, %+v", got.Matched, got.Keys, w)
	}
}

// TestSuggests measures a log with one key that is far above the others.
func TestSuggests(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for key := range 200 {
		for i := range 1 + key%7 {
			fmt.Fprintf(&log, "10.0.1.%d - - [01/Mar/2026:12:00:%02d +0000] \"GET / HTTP/1.1\" 200 1\n", key, i)
		}
	}
	for i := range 500 {
		fmt.Fprintf(&log, "10.9.9.9 - - [01/Mar/2026:12:%02d:%02d +0000] \"GET / HTTP/1.1\" 200 1\n", i/60, i%60)
	}
	rules := scripttest.Rules(t, "rules: [{name: it, per: [ip], limit: 9, window: 1m}, {name: held, per: [ip], limit: 9, window: {held: 1m}}]")
	got, err := replay.Suggest(t.Context(), rules, replay.Sweep{Rule: "it", Share: 0.01}, replay.Logs{Files: []replay.Log{text("log", log.String())}})
	if err != nil {
		t.Fatal(err)
	}
	w := got.Windows[0]
	if q := w.Candidates[w.Suggested].Quota; q != 7 || w.Peaks.Max != 60 || w.Peaks.P50 != 4 || w.Peaks.Top[0].Key != "10.9.9.9" {
		t.Errorf("got %d of %+v, want 7", q, w.Peaks)
	}
	want := "99.5 % of the keys never exceed 7 in 1m. 1 key exceeds 7, with 38.64 % of the requests. The quota would have denied 437 requests (33.77 %)."
	if w.Reason != want {
		t.Errorf("got %s\nwant %s", w.Reason, want)
	}
	for _, tc := range []struct {
		sweep replay.Sweep
		want  string
	}{
		{replay.Sweep{Rule: "its"}, `no rule "its": did you mean "it"?`},
		{replay.Sweep{Rule: "it", Quotas: []int64{2, 1}}, "quotas: not ascending"},
		{replay.Sweep{Rule: "it", Quotas: make([]int64, 65)}, "quotas: 65 of them"},
		{replay.Sweep{Rule: "it", Windows: []window.Window{{}}}, "window"},
		{replay.Sweep{Rule: "held"}, "held limits what is in flight, and a log does not say when that ends: state other windows"},
	} {
		_, err := replay.Suggest(t.Context(), rules, tc.sweep, replay.Logs{})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
}

// TestNetworks: keys that are networks, and addresses in different spellings, are
// those of the service, also in what limits deny alone and in a suggestion.
func TestNetworks(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i, ip := range []string{"2001:db8::1", "2001:DB8:0::2", "2001:db8::3", "::ffff:192.0.2.1", "192.0.2.1", "192.0.2.2"} {
		fmt.Fprintf(&log, "%s - - [01/Mar/2026:12:00:%02d +0000] \"GET / HTTP/1.1\" 200 1\n", ip, i)
	}
	rules := scripttest.Rules(t, "rules: [{name: it, per: [{ip: {v6: 64}}], limit: 1, window: 1m}]")
	source := replay.Logs{Files: []replay.Log{text("log", log.String())}}
	s, err := replay.Suggest(t.Context(), rules, replay.Sweep{Rule: "it", Quotas: []int64{1, 2}}, source)
	if err != nil {
		t.Fatal(err)
	}
	r, err := replay.Run(t.Context(), rules, source, replay.WithAlone(), replay.WithPeaks())
	if err != nil {
		t.Fatal(err)
	}
	it := r.Rules[0]
	if s.Keys != 3 || s.Windows[0].Candidates[0].Denied != 3 || it.Denied != 3 || it.Keys != 3 || *it.Alone != 3 {
		t.Errorf("got %d keys and %+v, %d denied, %d alone, want 3 each", s.Keys, s.Windows[0].Candidates, it.Denied, *it.Alone)
	}
	if got := it.Peaks.Keys[:3]; !slices.Equal(got, []int64{1, 1, 1}) {
		t.Errorf("got peaks %v, want 1, 2 and 3 hits", got)
	}
}
