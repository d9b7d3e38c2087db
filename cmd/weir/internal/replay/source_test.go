package replay_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
)

// entries returns the lines of a source as "log:line second ip", or "log:line bad".
func entries(t *testing.T, source replay.Source) (list []string) {
	t.Helper()
	r, err := source.Open(t.Context(), []string{"ip"})
	if err != nil {
		t.Fatal(err)
	}
	e := replay.Entry{Values: make([]string, 1)}
	for {
		err := r.Next(&e)
		switch {
		case errors.Is(err, io.EOF):
			if again := r.Next(&e); !errors.Is(again, io.EOF) {
				t.Errorf("got %v after the end, want the end again", again)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			return list
		case err != nil:
			t.Fatal(err)
		case e.Bad != nil:
			list = append(list, fmt.Sprintf("%s:%d bad", e.Log, e.Line))
		default:
			list = append(list, fmt.Sprintf("%s:%d %d %s", e.Log, e.Line, e.Time.Time().Second(), e.Values[0]))
		}
	}
}

// at returns a log with a line for each second; a negative one is a bad line.
func at(name string, seconds ...int) replay.Log {
	var b strings.Builder
	for i, s := range seconds {
		if s < 0 {
			b.WriteString("bad\n")
			continue
		}
		fmt.Fprintf(&b, "10.0.0.%d - - [01/Mar/2026:12:00:%02d +0000] \"GET / HTTP/1.1\" 200 1\n", i, s)
	}
	return text(name, b.String())
}

func TestMerge(t *testing.T) {
	t.Parallel()
	got := entries(t, replay.Logs{Files: []replay.Log{at("a", 1, 5, -1, 4, 9), at("b", 2, 5, 6), at("c"), at("d", -1, 3)}, Merge: true})
	want := []string{
		"d:1 bad", "a:3 bad", "a:1 1 10.0.0.0", "b:1 2 10.0.0.0", "d:2 3 10.0.0.1", "a:4 4 10.0.0.3", "a:2 5 10.0.0.1", "b:2 5 10.0.0.1",
		"b:3 6 10.0.0.2", "a:5 9 10.0.0.4",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	broken := replay.Log{Name: "broken", Open: func() (io.ReadCloser, error) { return nil, errors.New("gone") }}
	report, err := replay.Run(t.Context(), twoAnHour(t), replay.Logs{Files: []replay.Log{at("a", 1), broken}, Merge: true})
	if err == nil || !strings.Contains(err.Error(), "broken: gone") || report.Lines != 0 {
		t.Errorf("got %v and %+v, want the error of the log", err, report)
	}
}

// Bad lines have no time. They are not kept, so that a log of another format does not fill the
// memory.
func TestSort(t *testing.T) {
	t.Parallel()
	got := entries(t, replay.Logs{Files: []replay.Log{at("a", 10, 8, 12, -1, 11, 20, 17, 30, 29, 30)}, Sort: 3 * time.Second})
	want := []string{
		"a:2 8 10.0.0.1", "a:4 bad", "a:1 10 10.0.0.0", "a:5 11 10.0.0.4", "a:3 12 10.0.0.2", "a:7 17 10.0.0.6", "a:6 20 10.0.0.5",
		"a:9 29 10.0.0.8", "a:8 30 10.0.0.7", "a:10 30 10.0.0.9",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestOutOfOrder(t *testing.T) {
	t.Parallel()
	_, err := replay.Run(t.Context(), twoAnHour(t), replay.Logs{Files: []replay.Log{at("a", 10, 7), at("b", -1, 6, 9, 50, 30, 46)}, Sort: 3 * time.Second})
	want := "b:2: the time goes back from 2026-03-01 12:00:10 to 2026-03-01 12:00:06; lines out of order by more than 3s: 3, by up to 20s"
	if fmt.Sprint(err) != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// TestByTime checks that a log whose time is unknown stays after the one before it.
func TestByTime(t *testing.T) {
	t.Parallel()
	pipe := at("pipe", 1)
	pipe.Once = true
	packed := replay.Log{Name: "packed", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(pack(t, requests(1)))), nil
	}}
	for _, tc := range []struct {
		logs []replay.Log
		want string
	}{
		{[]replay.Log{at("c", -1, 30), at("bad", -1), at("b", 20, 3), at("a", 4), at("empty"), at("same", 4)}, "a empty same b c bad"},
		{[]replay.Log{at("empty"), at("b", 2), at("a", 1)}, "empty a b"},
		{[]replay.Log{at("b", 2), pipe}, "b pipe"},
		{[]replay.Log{at("b", 2), packed}, "packed b"},
		{[]replay.Log{at("b", 2)}, "b"},
	} {
		got := ""
		for _, l := range (replay.Logs{Files: tc.logs}).ByTime(t.Context()) {
			got += " " + l.Name
		}
		if got = strings.TrimSpace(got); got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
}

// TestSortLarge sorts a log of several blocks whose lines are out of order by less
// than the bound: the result is in order and has every line.
func TestSortLarge(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	type line struct{ at, written int }
	var lines []line
	for i := range 20_000 {
		lines = append(lines, line{i / 3, i/3*1000 + r.IntN(5000)})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.written, b.written) })
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "10.0.%d.%d - - [01/Mar/2026:%02d:%02d:%02d +0000] \"GET / HTTP/1.1\" 200 1\n",
			l.at/250, l.at%250, l.at/3600, l.at/60%60, l.at%60)
	}
	read, err := replay.Logs{Files: []replay.Log{text("log", b.String())}, Sort: 6 * time.Second}.Open(t.Context(), []string{"ip"})
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	e, count, last := replay.Entry{Values: make([]string, 1)}, 0, int64(0)
	for ; read.Next(&e) == nil; count++ {
		now := int64(e.Time)
		second := now / 1e6 % 86400
		if want := fmt.Sprintf("10.0.%d.%d", second/250, second%250); now < last || e.Values[0] != want {
			t.Fatalf("got %s at %d after %d, want %s", e.Values[0], now, last, want)
		}
		last = now
	}
	if count != len(lines) {
		t.Errorf("got %d lines, want %d", count, len(lines))
	}
}

// TestCompare compares the differences that it reports with the decisions of two
// replays of one line more each: for every prefix of the log, the last decision.
func TestCompare(t *testing.T) {
	t.Parallel()
	before := scripttest.Rules(t, `rules: [{name: a, per: [ip], limit: 3, window: 1m}, {name: b, when: {method: POST}, per: [ip], limit: 1, window: 1m}]`)
	after := scripttest.Rules(t, `rules: [{name: a, per: [ip], limit: 2, window: 1m}, {name: c, when: {path: /x}, then: deny}]`)
	var lines []string
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 300 {
		lines = append(lines, fmt.Sprintf("10.0.0.%d - - [01/Mar/2026:12:%02d:%02d +0000] \"%s %s HTTP/1.1\" 200 1\n", r.IntN(6), i/60, i%60,
			[]string{"GET", "POST"}[r.IntN(2)], []string{"/", "/x"}[r.IntN(4)/3]))
	}
	source := replay.Logs{Files: []replay.Log{text("log", strings.Join(lines, ""))}}
	c, err := replay.Compare(t.Context(), before, after, source, replay.WithTop(100))
	if err != nil {
		t.Fatal(err)
	}
	old, err := replay.Run(t.Context(), before, source)
	if err != nil {
		t.Fatal(err)
	}
	now, err := replay.Run(t.Context(), after, source)
	if err != nil {
		t.Fatal(err)
	}
	if c.DeniedOld != old.Denied || c.DeniedNew != now.Denied || c.NewlyDenied-c.NewlyAllowed != now.Denied-old.Denied || c.NewlyDenied == 0 || c.NewlyAllowed == 0 {
		t.Errorf("got %+v, want %d and %d denied", c, old.Denied, now.Denied)
	}
	for _, list := range [][]replay.Change{c.Denials, c.Admissions} {
		sum, byKey := int64(0), int64(0)
		for _, change := range list {
			sum += change.Requests
			if len(change.Examples) != min(3, int(change.Requests)) {
				t.Errorf("%s: got %d examples of %d requests", change.Rule, len(change.Examples), change.Requests)
			}
			for _, e := range change.Examples {
				if want := strings.TrimSuffix(lines[e.Line-1], "\n"); e.Text != want {
					t.Errorf("line %d: got %s, want %s", e.Line, e.Text, want)
				}
			}
			for _, k := range change.Top {
				byKey += k.Denied
			}
			if change.Rule == "c" && change.Keys != 0 {
				t.Errorf("c: got %d keys, want none", change.Keys)
			}
			if change.Rule != "c" && change.Keys != int64(len(change.Top)) {
				t.Errorf("%s: got %d keys, want %d", change.Rule, change.Keys, len(change.Top))
			}
		}
		if want := c.NewlyDenied; &list[0] == &c.Denials[0] && sum != want {
			t.Errorf("got %d newly denied by rule, want %d", sum, want)
		}
	}
	over := int64(0)
	for _, n := range c.NewlyDeniedOver.Denied {
		over += n
	}
	if over != c.NewlyDenied {
		t.Errorf("got %d over time, want %d", over, c.NewlyDenied)
	}
	same, err := replay.Compare(t.Context(), before, before, source)
	if err != nil || same.NewlyDenied+same.NewlyAllowed+same.OtherOutcome != 0 || same.DeniedOld == 0 {
		t.Errorf("got %+v, %v, want no difference", same, err)
	}
}

// TestAlone checks that what a limit denies alone is what a replay of a file with only this rule
// denies.
func TestAlone(t *testing.T) {
	t.Parallel()
	source := replay.Logs{Files: []replay.Log{text("visits", visits())}}
	rules := wordpress(t, map[string]int64{"requests-per-minute": 30})
	all, err := replay.Run(t.Context(), rules, source, replay.WithAlone())
	if err != nil {
		t.Fatal(err)
	}
	masked := int64(0)
	for i, r := range all.Rules {
		one, err := replay.Run(t.Context(), only(t, rules, i), source)
		if err != nil {
			t.Fatal(err)
		}
		if want := one.Rules[0].Denied; *r.Alone != want {
			t.Errorf("%s: got %d alone, want %d", r.Name, *r.Alone, want)
		}
		for _, m := range r.MaskedBy {
			masked += m.Denied
		}
	}
	if masked == 0 {
		t.Error("no rule masks another one")
	}
	var report strings.Builder
	if err := all.Write(&report, false); err != nil {
		t.Fatal(err)
	}
	for _, r := range all.Rules {
		for _, m := range r.MaskedBy {
			want := fmt.Sprintf("%s denies %d, alone it would deny %d; ", r.Name, r.Denied, *r.Alone)
			if _, line, _ := strings.Cut(report.String(), want); !strings.Contains(line, fmt.Sprintf("%s denies %d of these", m.Rule, m.Denied)) {
				t.Errorf("the report does not say that %s denies %d of the requests that %s would deny:\n%s", m.Rule, m.Denied, r.Name, report.String())
			}
		}
	}
}
