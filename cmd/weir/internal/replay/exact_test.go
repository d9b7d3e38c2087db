package replay_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
)

// TestExact compares a replay of a generated log with an exact count. The count
// is written from the definitions in docs/explanation/windows.md and shares no code with
// weir. Both agree to the last hit, with the limits of the example and others.
func TestExact(t *testing.T) {
	t.Parallel()
	content := visits()
	lines, bad := readExactly(t, content)
	for name, limits := range map[string]map[string]int64{
		"example": nil,
		"tight": {
			"logins-per-minute": 3, "logins-per-hour": 4, "requests-per-minute": 40,
			"paths-per-hour": 50, "bytes-per-day": 50_000_000,
		},
		"groups": { // quotas above 100 are counted in groups
			"logins-per-minute": 1000, "logins-per-hour": 50, "requests-per-minute": 250,
			"paths-per-hour": 1000, "bytes-per-day": 200_000_000,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := replay.Run(t.Context(), wordpress(t, limits), replay.Logs{Files: []replay.Log{text("visits", content)}})
			if err != nil {
				t.Fatal(err)
			}
			want := exactly(lines, limits)
			if got.Lines != int64(len(lines))+bad || got.Bad != bad || len(lines) < 5000 || bad == 0 {
				t.Errorf("got %d lines, %d bad, want %d and %d more", got.Lines, got.Bad, len(lines), bad)
			}
			for i := range want {
				over := got.Rules[i].Timeline
				got.Rules[i].Timeline = nil
				if !reflect.DeepEqual(got.Rules[i], want[i]) {
					t.Errorf("got %+v, want %+v", got.Rules[i], want[i])
				}
				if a, d := total(over.Allowed), total(over.Denied); a != want[i].Allowed || d != want[i].Denied {
					t.Errorf("%s: got %d allowed and %d denied over time, want %d and %d", want[i].Name, a, d, want[i].Allowed, want[i].Denied)
				}
				if limits == nil && want[i].Denied == 0 {
					t.Errorf("%s denies nothing in the log", want[i].Name)
				}
			}
		})
	}
}

// only returns the set with only rule i.
func only(t *testing.T, rules *rule.Set, i int) *rule.Set {
	t.Helper()
	set, err := rule.New([]rule.Rule{*rules.Rule(i)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func total(of []int64) (sum int64) {
	for _, n := range of {
		sum += n
	}
	return sum
}

// wordpress returns the rules of the example, with other limits for some.
func wordpress(t testing.TB, limits map[string]int64) *rule.Set {
	t.Helper()
	file, err := rulefile.Load("../../../../examples/wordpress.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules []rule.Rule
	for i := range file.Set.Len() {
		r := *file.Set.Rule(i)
		if n, ok := limits[r.Name]; ok {
			r.Quota = &rule.Quota{Value: n}
		}
		rules = append(rules, r)
	}
	set, err := rule.New(rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// exactRule counts one of the example's rules. All of them are per address.
type exactRule struct {
	replay.Tally
	quota   int64
	matches func(exactLine) bool
	hits    func(exactLine) int64 // nil: one
	fresh   func(quota int64) exactWindow
	windows map[string]exactWindow // by key
	denied  map[string]*replay.DeniedKey
}

func exactRules() []*exactRule {
	login := func(l exactLine) bool { return l.method == "POST" && l.path == "/wp-login.php" }
	always := func(exactLine) bool { return true }
	rules := []*exactRule{
		{quota: 5, matches: login, fresh: exactSliding(time.Minute)},
		{quota: 20, matches: login, fresh: exactSliding(time.Hour)},
		{quota: 300, matches: always, fresh: exactSliding(time.Minute)},
		{quota: 100, matches: func(l exactLine) bool { return l.path != "" }, fresh: exactMembers(time.Hour)},
		{quota: 500_000_000, matches: always, hits: func(l exactLine) int64 { return l.bytes }, fresh: exactDay("America/New_York")},
	}
	for i, name := range []string{"logins-per-minute", "logins-per-hour", "requests-per-minute", "paths-per-hour", "bytes-per-day"} {
		rules[i].Name, rules[i].windows, rules[i].denied = name, map[string]exactWindow{}, map[string]*replay.DeniedKey{}
	}
	return rules
}

// exactly returns what the example's rules do to the lines of a log.
func exactly(lines []exactLine, limits map[string]int64) []replay.Tally {
	rules := exactRules()
	for _, r := range rules {
		r.quota = cmp.Or(limits[r.Name], r.quota)
	}
	for _, l := range lines {
		takeExactly(rules, l)
	}
	var tallies []replay.Tally
	for _, r := range rules {
		r.Keys, r.KeysDenied = int64(len(r.windows)), int64(len(r.denied))
		r.Kind, r.Mode = "limit", "enforce"
		r.Allowed = r.Matched - r.Denied
		keys := slices.SortedFunc(maps.Keys(r.denied), func(a, b string) int {
			return cmp.Or(cmp.Compare(r.denied[b].Denied, r.denied[a].Denied), cmp.Compare(a, b))
		})
		r.TopDenied = []replay.DeniedKey{}
		for _, key := range keys[:min(len(keys), 10)] {
			r.TopDenied = append(r.TopDenied, *r.denied[key])
		}
		tallies = append(tallies, r.Tally)
	}
	return tallies
}

// takeExactly counts a line in every rule that matches, or in none.
func takeExactly(rules []*exactRule, l exactLine) {
	var count []func()
	var first *exactRule // over its quota
	for _, r := range rules {
		if !r.matches(l) {
			continue
		}
		w := r.windows[l.ip]
		if w == nil {
			w = r.fresh(r.quota)
			r.windows[l.ip] = w
		}
		hits := int64(1)
		if r.hits != nil {
			hits = r.hits(l)
		}
		r.Matched++
		if w.fits(l, hits) {
			count = append(count, func() { w.count(l, hits) })
			continue
		}
		if first == nil {
			first = r
		}
		r.deny(l)
	}
	if first != nil {
		first.Decided++
		return
	}
	for _, c := range count {
		c()
	}
}

func (r *exactRule) deny(l exactLine) {
	r.Denied++
	k := r.denied[l.ip]
	if k == nil {
		k = &replay.DeniedKey{Key: l.ip, First: l.at, Last: l.at}
		r.denied[l.ip] = k
	}
	k.Denied++
	if r.FirstDenied == nil {
		first, last := l.at, l.at
		r.FirstDenied, r.LastDenied = &first, &last
	}
	for _, first := range []*time.Time{&k.First, r.FirstDenied} {
		if l.at.Before(*first) {
			*first = l.at
		}
	}
	for _, last := range []*time.Time{&k.Last, r.LastDenied} {
		if l.at.After(*last) {
			*last = l.at
		}
	}
}

// exactLine is what the rules use of a line.
type exactLine struct {
	at               time.Time
	ip, method, path string
	bytes            int64
}

var exactForm = regexp.MustCompile(`^(\S+) - - \[(.+?)\] "(\S+) ([^ ?]+)\S* HTTP/1.1" 200 (\S+) `)

// readExactly returns the lines of a log in the order of their times, and how many
// others are bad.
func readExactly(t *testing.T, content string) (lines []exactLine, bad int64) {
	t.Helper()
	for line := range strings.Lines(content) {
		f := exactForm.FindStringSubmatch(line)
		if f == nil {
			bad++
			continue
		}
		at, err := time.Parse("02/Jan/2006:15:04:05 -0700", f[2])
		if err != nil {
			t.Fatal(err)
		}
		size, _ := strconv.ParseInt(f[5], 10, 64) // - is 0
		lines = append(lines, exactLine{at: at.UTC(), ip: f[1], method: f[3], path: f[4], bytes: size})
	}
	slices.SortStableFunc(lines, func(a, b exactLine) int { return a.at.Compare(b.at) })
	return lines, bad
}

// TestExactInAnyOrder replays a log whose lines are in other orders. The report is that
// of an exact count, or the replay says what is wrong, and the report is exact
// with the Sort that the error states.
func TestExactInAnyOrder(t *testing.T) {
	t.Parallel()
	lines := strings.SplitAfter(strings.TrimSuffix(visits(), "\n"), "\n")
	lines[len(lines)-1] += "\n"
	random := rand.New(rand.NewPCG(5, 6))
	shuffled := slices.Clone(lines)
	random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	backwards := slices.Clone(lines)
	slices.Reverse(backwards)
	var busy, others []string // 10.0.0.7 is at the end
	for _, line := range lines {
		if strings.HasPrefix(line, "10.0.0.7 ") {
			busy = append(busy, line)
		} else {
			others = append(others, line)
		}
	}
	quarter := len(lines) / 4
	var parts [4][]string // of logs that were rotated, the newest first
	var servers [3][]string
	for i := range parts {
		parts[3-i] = lines[i*quarter : (i+1)*quarter]
	}
	parts[0] = lines[3*quarter:]
	for _, line := range lines {
		i := random.IntN(len(servers))
		servers[i] = append(servers[i], line)
	}
	for name, tc := range map[string]struct {
		logs    [][]string
		merge   bool
		refused bool // with the default of Sort
	}{
		"as written":       {[][]string{lines}, false, false},
		"shuffled":         {[][]string{shuffled}, false, true},
		"backwards":        {[][]string{backwards}, false, true},
		"one key behind":   {[][]string{others, busy}, true, false},
		"one key at end":   {[][]string{slices.Concat(others, busy)}, false, true},
		"newest first":     {parts[:], false, false},
		"one after other":  {servers[:], false, true},
		"several servers":  {servers[:], true, false},
		"joined backwards": {[][]string{slices.Concat(parts[:]...)}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logs := replay.Logs{Merge: tc.merge}
			for i, l := range tc.logs {
				logs.Files = append(logs.Files, text(fmt.Sprint(i), strings.Join(l, "")))
			}
			logs.Files = logs.ByTime(t.Context())
			content := ""
			for _, l := range logs.Files {
				i, err := strconv.Atoi(l.Name)
				if err != nil {
					t.Fatal(err)
				}
				content += strings.Join(tc.logs[i], "")
			}
			got, err := replay.Run(t.Context(), wordpress(t, nil), logs)
			bad, refused := errors.AsType[*replay.OrderError](err)
			if refused != tc.refused {
				t.Fatalf("got error %v, want one: %t", err, tc.refused)
			}
			if refused {
				for _, short := range []time.Duration{time.Second, 2 * time.Second} {
					logs.Sort = bad.Sort() - short
					if _, err := replay.Run(t.Context(), wordpress(t, nil), logs); err == nil {
						t.Errorf("got no error with Sort %v, want one, as with %v", logs.Sort, bad.Sort())
					}
				}
				logs.Sort = bad.Sort()
				got, err = replay.Run(t.Context(), wordpress(t, nil), logs)
			}
			if err != nil {
				t.Fatal(err)
			}
			want, _ := readExactly(t, content)
			for i, w := range exactly(want, nil) {
				g := got.Rules[i]
				g.Timeline = nil
				if !reflect.DeepEqual(g, w) {
					t.Errorf("got %+v, want %+v", g, w)
				}
			}
		})
	}
}
