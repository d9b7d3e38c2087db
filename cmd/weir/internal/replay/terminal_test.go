package replay_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
)

// TestTerminal: in a terminal, reports have lines that show numbers over time, or
// bars, and otherwise the same text.
func TestTerminal(t *testing.T) {
	t.Parallel()
	source := replay.Logs{Files: []replay.Log{at("log", 1, 1, 1, 1, 2, 9)}}
	rules := scripttest.Rules(t, `rules: [{name: all, limit: 2, window: 1s}]`)
	report, err := replay.Run(t.Context(), rules, source)
	if err != nil {
		t.Fatal(err)
	}
	comparison, err := replay.Compare(t.Context(), scripttest.Rules(t, `rules: [{name: all, limit: 3, window: 1s}]`), rules, source)
	if err != nil {
		t.Fatal(err)
	}
	suggestion, err := replay.Suggest(t.Context(), rules, replay.Sweep{Rule: "all", Quotas: []int64{1, 5}}, source)
	if err != nil {
		t.Fatal(err)
	}
	show := func(write func(w *strings.Builder) error) string {
		var b strings.Builder
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, tc := range []struct {
		plain, terminal string
		graphs          []string
	}{
		{
			show(func(w *strings.Builder) error { return report.Write(w, false) }),
			show(func(w *strings.Builder) error { return report.Write(w, true) }),
			[]string{"\n  █▂      ▂  requests\n", "\n  █          denied\n", "\n  █          denied by all\n"},
		},
		{
			show(func(w *strings.Builder) error { return comparison.Write(w, false) }),
			show(func(w *strings.Builder) error { return comparison.Write(w, true) }),
			[]string{"\n  █          newly denied\n"},
		},
		{
			show(func(w *strings.Builder) error { return suggestion.Write(w, false) }),
			show(func(w *strings.Builder) error { return suggestion.Write(w, true) }),
			[]string{"\n  up to      5 ████████████████████████████████████████ 1 key\n"},
		},
	} {
		rest := tc.terminal
		for _, graph := range tc.graphs {
			if !strings.Contains(rest, graph) {
				t.Errorf("got\n%s\nwant %q in it", tc.terminal, graph)
			}
			rest = strings.Replace(rest, graph[1:], "", 1)
		}
		if strings.Join(strings.Fields(rest), " ") != strings.Join(strings.Fields(tc.plain), " ") {
			t.Errorf("got\n%s\nwant the text without graphs\n%s", rest, tc.plain)
		}
	}
}
