package rulefile_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// TestWarningsHold sends random traffic through random rules. A rule that never
// applies matches nothing, and a limit that never decides is exceeded only where
// the other limit is exceeded, too.
func TestWarningsHold(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 7))
		src := randomRules(r)
		file, err := rulefile.Parse("rules.yaml", []byte(src), nil)
		if err != nil {
			t.Fatalf("got\n%v\nfor\n%s", err, src)
		}
		dead, pointless := map[string]bool{}, map[string]string{}
		for _, w := range file.Warnings() {
			seen[w.Name]++
			switch w.Name {
			case "dead-rule", "never-matches":
				dead[w.Rule] = !strings.Contains(w.Problem, "every request")
			case "pointless-limit":
				pointless[w.Rule] = strings.Split(w.Problem, `"`)[1]
			}
		}
		if len(dead)+len(pointless) > 0 {
			holds(t, r, file, dead, pointless, src)
		}
	}
	for _, name := range []string{"dead-rule", "never-matches", "pointless-limit"} {
		if seen[name] < 20 {
			t.Errorf("got %d warnings %s, want enough to test", seen[name], name)
		}
	}
}

// TestIndexOfConditions compares the rules that the linter finds by their conditions with
// a comparison of each rule with each other one.
func TestIndexOfConditions(t *testing.T) {
	t.Parallel()
	tests := []string{"a", "[a, ab]", `"*"`, "{not: [a, ab]}", "2", "192.0.2.1", `{all: [{not: x}, "*"]}`, "{all: [[a, ab], {prefix: ab}]}", "{all: [{in: l}, {prefix: a}]}"}
	for _, name := range slices.Sorted(maps.Keys(matchers)) {
		tests = append(tests, matchers[name]...)
	}
	r := rand.New(rand.NewPCG(3, 9))
	for range 300 {
		var b strings.Builder
		b.WriteString("lists: {l: {values: [a, ab]}}\nrules:\n")
		for i := range 12 {
			fmt.Fprintf(&b, "  - {name: r%d, per: [%s], limit: 3, window: 1m, when: {", i, []string{"x", "y"}[r.IntN(2)])
			for _, name := range []string{"x", "y", "z"}[r.IntN(4)%3:] {
				fmt.Fprintf(&b, "%s: %s, ", name, tests[r.IntN(len(tests))])
			}
			b.WriteString("}}\n")
		}
		file, err := rulefile.Parse("rules.yaml", []byte(b.String()), nil)
		if err != nil {
			t.Fatalf("got\n%v\nfor\n%s", err, b.String())
		}
		if pair, missed := rulefile.NotFound(file.Set); missed {
			t.Fatalf("rule %d implies the conditions of rule %d, which was not found:\n%s", pair[0], pair[1], b.String())
		}
	}
}

// TestManyRules checks that warnings about 16,000 rules compare few pairs of them, whatever their conditions have in
// common, or stop and say so. Comparing each rule with each other one takes a minute.
func TestManyRules(t *testing.T) {
	if testing.Short() {
		t.Skip("takes several seconds")
	}
	limit := func(when string) func(i int) string {
		return func(i int) string {
			return fmt.Sprintf("when: {"+when+"}, per: [user], limit: %[2]d, window: {sliding: %[3]ds}", i, i%50+1, i%3600+1)
		}
	}
	mixed := func(i int) string {
		switch i % 4 {
		case 0:
			return fmt.Sprintf("when: {action: a%d}, per: [user], limit: %d, window: 1m", i, i%50+1)
		case 1:
			return fmt.Sprintf("when: {user: u%d}, then: deny", i)
		case 2:
			return fmt.Sprintf("when: {path: {prefix: /p%d/}}, per: [user], limit: 9, window: 1m", i)
		}
		return fmt.Sprintf("when: {tenant: t%d, action: a%d}, per: [user], limit: 9, window: 1m", i%100, i/100)
	}
	for name, test := range map[string]struct {
		rule    func(i int) string
		stopped bool // some pairs are not compared
	}{
		"mixed":         {mixed, false},
		"same first":    {limit("action: post, path: /p%[1]d"), false},
		"same list":     {limit("ip: {in: bad}, path: {prefix: /p%[1]d/}"), false},
		"same verdicts": {func(i int) string { return fmt.Sprintf("when: {action: post, path: p%d}, then: deny", i) }, false},
		"excluded":      {limit("user: {not: u%[1]d}"), true},
		"all the same":  {limit("action: post, x%[1]d: {absent: true}"), false},
		"no difference": {limit("action: post"), true},
		"silenced":      {func(i int) string { return "ignore: [literal-address], " + limit("action: post")(i) }, true},
		"attributes":    {limit("attribute%[1]d: post"), false},
	} {
		var b strings.Builder
		b.WriteString("lists: {bad: {values: [192.0.2.1]}}\nrules:\n")
		for i := range 16_000 {
			fmt.Fprintf(&b, "  - {name: r%d, %s}\n", i, test.rule(i))
		}
		file, err := rulefile.Parse("rules.yaml", []byte(b.String()), nil)
		if err != nil {
			t.Fatal(err)
		}
		stopped := slices.ContainsFunc(file.Warnings(), func(w rulefile.Warning) bool { return w.Name == "not-compared" })
		if stopped != test.stopped {
			t.Errorf("%s: got a warning not-compared: %v, want %v", name, stopped, test.stopped)
		}
	}
}

// TestFewRulesOfManyParts checks that comparing rules stops, and says so, however much a few of them hold: without a bound
// each of these files takes from five seconds to minutes.
func TestFewRulesOfManyParts(t *testing.T) {
	t.Parallel()
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(format, "#", fmt.Sprint(10_000+i)))
		}
		return b.String()
	}
	nots := list(45, "a#: {not: x}, ")
	for name, rules := range map[string]string{
		"verdicts":          list(950, "- {name: r#, when: {"+nots+"z: {not: y#}}, then: deny}\n"),
		"limits":            list(950, "- {name: r#, when: {"+nots+"z: {not: y#}}, per: [user], limit: 5, window: 1m}\n"),
		"tests":             list(2, "- {name: r#, when: {a: {all: ["+strings.Repeat("{not: x}, ", 35_000)+"{not: y#}]}}, then: deny}\n"),
		"values with tests": "- {name: r, when: {a: {all: [[" + list(40_000, "v#, ") + "w], " + list(30_000, "{not: x}, ") + "{not: y}]}}, then: deny}\n",
		"values in pattern": "- {name: r, when: {a: {all: [[" + list(300, strings.Repeat("x", 1000)+"#, ") + "w], {match: '((x?){30}){30}y'}]}}, then: deny}\n",
		"key":               "- {name: r, when: {" + list(20_000, "b#: {absent: true}, ") + "}, per: [" + list(30_000, "c#, ") + "d], limit: 1, window: 1m}\n",
		"names":             list(1000, "- {name: r#, per: ["+strings.Repeat("a", 50)+"#, b], limit: 1, window: 1m}\n") + list(2, "- {name: s#, per: ["+list(1000, strings.Repeat("b", 50)+"#, ")+"c], limit: 1, window: 1m}\n"),
	} {
		file, err := rulefile.Parse("rules.yaml", []byte("rules:\n"+rules), nil)
		if err != nil {
			t.Fatalf("%s: got %.500v, want no error", name, err)
		}
		if !slices.ContainsFunc(file.Warnings(), func(w rulefile.Warning) bool { return w.Name == "not-compared" }) {
			t.Errorf("%s: got no warning not-compared", name)
		}
	}
}

// TestSilentTrigger sends single hits and large sums to triggers in buckets. Exactly those
// that the warning is about report nothing.
func TestSilentTrigger(t *testing.T) {
	t.Parallel()
	for _, burst := range []int{3, 4, 5, 6} {
		src := fmt.Sprintf("rules: [{name: points, per: [user], sum: points, trigger: 5, window: {bucket: 1h, burst: %d}}]", burst)
		file, err := rulefile.Parse("rules.yaml", []byte(src), nil)
		if err != nil {
			t.Fatal(err)
		}
		e, err := weir.NewEngine(file.Set, weir.WithStore(memstore.New()))
		if err != nil {
			t.Fatal(err)
		}
		reported := false
		for _, points := range []string{"1", "4", "1", "1", "1", "100"} {
			req, d := weir.Request{Attributes: weir.Attributes("user", "ann", "points", points)}, weir.Decision{}
			if err := e.Do(t.Context(), store.Take, &req, &d); err != nil {
				t.Fatal(err)
			}
			reported = reported || len(d.Triggered) > 0
		}
		if warned := len(file.Warnings()) > 0; warned == reported {
			t.Errorf("burst %d: got a warning: %v, and a report: %v", burst, warned, reported)
		}
	}
}

// TestExamplesHaveNoWarnings checks the files that users start from.
func TestExamplesHaveNoWarnings(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(examples) < 10 {
		t.Fatalf("got %v and %v, want the examples", examples, err)
	}
	for _, name := range append(examples, "../cmd/weir/example.yaml") {
		if strings.HasSuffix(name, "_test.yaml") {
			continue
		}
		file, err := rulefile.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range file.Warnings() {
			t.Errorf("%s: %v", w.Name, w)
		}
	}
}

func holds(t *testing.T, r *rand.Rand, file *rulefile.File, dead map[string]bool, pointless map[string]string, src string) {
	t.Helper()
	now := window.Instant(1e15)
	engine, err := weir.NewEngine(file.Set, weir.WithStore(memstore.New(memstore.WithClock(func() window.Instant { return now }))))
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		now += window.Instant(r.Int64N(40 * time.Second.Microseconds()))
		d, err := engine.Take(t.Context(), weir.Request{Attributes: weir.Attributes(
			"a", pick(r, "", "x", "y"), "b", pick(r, "", "x", "y"), "user", pick(r, "1", "2"), "ip", pick(r, "3", "4"),
		)})
		if err != nil {
			t.Fatal(err)
		}
		over := map[string]bool{}
		for _, u := range d.Usages {
			over[u.Rule] = !u.Allowed
			if dead[u.Rule] {
				t.Fatalf("rule %s matches, want never:\n%s", u.Rule, src)
			}
		}
		for name, by := range pointless {
			if over[name] && !over[by] {
				t.Fatalf("rule %s denies where %s does not:\n%s", name, by, src)
			}
		}
	}
}

func randomRules(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range 2 + r.IntN(3) {
		fmt.Fprintf(&b, "  - name: r%d\n", i)
		if when := pick(r, "", "{a: x}", "{a: [x, y]}", `{a: "*"}`, "{a: {absent: true}}", "{a: {not: x}}", "{b: {prefix: x}}",
			"{a: x, b: y}", `{a: {equal: [x, y], not: x}}`, "{a: {equal: x, absent: true}}", "{user: {absent: true}}"); when != "" {
			fmt.Fprintf(&b, "    when: %s\n", strings.Replace(when, "{equal: x, absent: true}", "{equal: x, prefix: y}", 1))
		}
		if r.IntN(4) == 0 {
			fmt.Fprintf(&b, "    then: %s\n    rest: %s\n", pick(r, "allow", "deny"), pick(r, "skip", "skip", "count"))
			continue
		}
		fmt.Fprintf(&b, "    per: %s\n    limit: %d\n    window: %s\n", pick(r, "[user]", "[user, ip]"), pickInt(r),
			pick(r, "30s", "1m", "5m", "1h", "minute", "hour", "{fixed: 1m}", "{cells: 1m, n: 6}", "{bucket: 1m}", "{sliding: 2m, precision: 2}", "ever", "{held: 1m}"))
		if r.IntN(3) == 0 && !strings.HasSuffix(b.String(), "{held: 1m}\n") {
			fmt.Fprintf(&b, "    %s\n", pick(r, "hold: 2m", "hold: 10s\n    unsettled: release", "ban: 10s", "ban: 1h"))
		}
	}
	return b.String()
}

func pickInt(r *rand.Rand) int { return []int{1, 2, 3, 5, 8}[r.IntN(5)] }

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }
