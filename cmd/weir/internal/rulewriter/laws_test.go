package rulewriter_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirhq/weir/cmd/weir/internal/rulewriter"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/window"
)

// FuzzWrite: rules that were written and read again are the same rules. They
// match the same requests, with the same keys, identities and limits.
func FuzzWrite(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed, awkward[seed%uint64(len(awkward))])
	}
	schema, err := jsonschema.NewCompiler().Compile("../../weir.schema.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, seed uint64, word string) {
		t.Parallel()
		g := generator{rand.New(rand.NewPCG(seed, 1)), append(slices.Clone(awkward), word)}
		d, set := g.draft(t)
		src, err := rulewriter.Write(d)
		if err != nil {
			t.Fatalf("got %v for %+v", err, d)
		}
		file, err := rulefile.Parse("rules.yaml", src, nil)
		if err != nil {
			t.Fatalf("got\n%v\nfor\n%s", err, src)
		}
		var content any
		if err := yaml.Unmarshal(src, &content); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(content); err != nil {
			t.Errorf("got %v, want a valid file:\n%s", err, src)
		}
		sameSet(t, file.Set, set, src)
		sameOutcomes(t, file.Set, d.Outcomes, src)
		for range 50 {
			sameAnswers(t, file.Set, set, g.request(set), src)
		}
	})
}

// sameSet compares what the rules are, but for their tests.
func sameSet(t *testing.T, got, want *rule.Set, src []byte) {
	t.Helper()
	if got.Len() != want.Len() || !slices.Equal(got.Attributes(), want.Attributes()) {
		t.Fatalf("got %d rules on %q, want %d on %q:\n%s", got.Len(), got.Attributes(), want.Len(), want.Attributes(), src)
	}
	for i := range want.Len() {
		if got.Compiled().ID(i) != want.Compiled().ID(i) {
			t.Errorf("rule %d: got ID %q, want %q:\n%s", i, got.Compiled().ID(i), want.Compiled().ID(i), src)
		}
		if g, w := bare(got.Rule(i)), bare(want.Rule(i)); !reflect.DeepEqual(g, w) {
			t.Errorf("rule %d: got\n%+v, want\n%+v:\n%s", i, g, w, src)
		}
	}
}

// bare returns r without its tests and the zones of its windows, which the
// rule's identity shows.
func bare(r *rule.Rule) rule.Rule {
	b := *r
	b.When, b.Window.Zone, b.After.Window.Zone = nil, nil, nil
	return b
}

func sameOutcomes(t *testing.T, got *rule.Set, want map[string]rule.Outcome, src []byte) {
	t.Helper()
	for name, w := range want {
		g, ok := got.Outcome(name)
		if !ok || g.Allow != w.Allow || w.Status != 0 && g.Status != w.Status || meaning(t, g.Body) != meaning(t, w.Body) {
			t.Errorf("outcome %s: got %+v %s, want %+v %s:\n%s", name, g, g.Body, w, w.Body, src)
		}
	}
}

// meaning returns JSON in one of its spellings.
func meaning(t *testing.T, src []byte) string {
	t.Helper()
	if len(src) == 0 {
		return ""
	}
	var v any
	if err := json.Unmarshal(src, &v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func sameAnswers(t *testing.T, got, want *rule.Set, values []string, src []byte) {
	t.Helper()
	matched := want.Compiled().Match(values, nil, false)
	if m := got.Compiled().Match(values, nil, false); !slices.Equal(m, matched) {
		t.Fatalf("%q for %q: got %v, want %v:\n%s", values, want.Attributes(), m, matched, src)
	}
	for _, i := range matched {
		if g, w := got.Compiled().AppendKey(nil, i, values), want.Compiled().AppendKey(nil, i, values); !slices.Equal(g, w) {
			t.Errorf("rule %d, %q: got key %q, want %q:\n%s", i, values, g, w, src)
		}
		g, gotErr := got.Compiled().LimitOf(i, values, nil)
		w, wantErr := want.Compiled().LimitOf(i, values, nil)
		if (gotErr == nil) != (wantErr == nil) {
			t.Errorf("rule %d, %q: got error %v, want %v:\n%s", i, values, gotErr, wantErr, src)
		}
		if (g == nil) != (w == nil) || g != nil && g.Capacity() != w.Capacity() {
			t.Errorf("rule %d, %q: got limit %+v, want %+v:\n%s", i, values, g, w, src)
		}
	}
}

// awkward lists text that YAML reads as something else, and ordinary text.
var awkward = []string{
	"a", "b", "post", "é", "北京", "a b", "42", "-5", "10.0.0.1", "fe80::1", "10.0.0.0/8", "1.50", "007", "1_000",
	"+5", "1e3", "0x1F", "0b1", "0o7", ".5", "5.", ".inf", "-.INF", ".nan", "true", "True", "no", "off", "y", "null",
	"~", "*", "**", "-", "- a", "--- a", "...", "?", "? a", "a: b", "a:", ":a", "#a", "a #b", "a#b", "a,b", "[a]",
	"{a}", "&a", "!a", "|", ">", "%a", "@a", "`a", `"a"`, "'a'", `a\b`, " a", "a ", "\ta", "a\nb", "a\r\n", "\x00",
	"\x7f", "\u0085", "\u2028", "\ufeff", "\U0001f40b", "<<", "=", "2024-01-01", "12:30", "by", "else",
}

type generator struct {
	*rand.Rand
	words []string
}

func (g generator) pick(words ...string) string { return words[g.IntN(len(words))] }

// word returns text that is not empty. A fuzzer's text may be invalid UTF-8, or
// too long for a key in YAML.
func (g generator) word() string {
	if w := []rune(g.pick(g.words...)); len(w) > 0 {
		return string(w[:min(len(w), 100)])
	}
	return "x"
}

func (g generator) some(n int) []string {
	words := make([]string, n)
	for i := range words {
		words[i] = g.word()
	}
	return words
}

// draft returns a draft of up to eight valid rules, and their set.
func (g generator) draft(t *testing.T) (*rulewriter.Draft, *rule.Set) {
	t.Helper()
	d := &rulewriter.Draft{
		Zone:     g.zone(),
		Head:     g.word(),
		Comments: map[string]string{"r0": g.word() + "\n" + g.word(), "r1": g.word()},
		Lists:    []rulewriter.List{{Name: g.word(), Values: g.some(g.IntN(4))}},
		Outcomes: map[string]rule.Outcome{
			"captcha": {Status: g.IntN(2) * 418, Body: g.body(t)},
			"member":  {Allow: true, Body: g.body(t)},
		},
	}
	list, err := rule.In(d.Lists[0].Name, d.Lists[0].Values)
	if err != nil {
		d.Lists[0].Values = nil
		list, _ = rule.In(d.Lists[0].Name, nil)
	}
	for n := g.IntN(8); len(d.Rules) < n; {
		r := g.rule(list)
		r.Name = fmt.Sprint("r", len(d.Rules))
		if _, err := rule.New([]rule.Rule{r}, d.Outcomes); err == nil {
			d.Rules = append(d.Rules, r)
		}
	}
	set, err := rule.New(d.Rules, d.Outcomes)
	if err != nil {
		t.Fatal(err)
	}
	return d, set
}

func (g generator) body(t *testing.T) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"text": g.word(), g.word(): g.IntN(1000) - 500, "list": []any{g.word(), nil, true, 1.25, map[string]any{}, []any{}},
		"deep": map[string]any{g.word(): map[string]any{"a": []any{g.some(g.IntN(12))}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func (g generator) zone() *time.Location {
	zone, err := time.LoadLocation(g.pick("UTC", "Asia/Shanghai", "America/New_York"))
	if err != nil {
		panic(err) // rulefile has them compiled in
	}
	return zone
}

func (g generator) attribute() string { return g.pick("user", "ip", "a: b", "off", "7", "北") }

// rule returns a rule that may be invalid.
func (g generator) rule(list rule.Test) rule.Rule {
	r := rule.Rule{
		Mode:     rule.Mode(g.IntN(3)),
		OnOutage: rule.Outage(g.IntN(3)),
		MaxKeys:  g.Int64N(3),
		Code:     g.Int64N(3),
	}
	trim := map[string]bool{}
	for range g.IntN(5) {
		c := rule.Condition{Attribute: g.attribute(), Test: g.test(list, 0)}
		if _, ok := trim[c.Attribute]; !ok {
			trim[c.Attribute] = g.IntN(2) == 0
		}
		c.Trim = trim[c.Attribute]
		r.When = append(r.When, c)
	}
	switch g.IntN(5) {
	case 0:
		r.Then, r.CountRest, r.MaxKeys = g.pick("allow", "deny", "captcha", "member"), g.IntN(2) > 0, 0
		return r
	case 1:
		r.Trigger, r.Once = 1+g.Int64N(9), g.IntN(2) == 0
	case 2:
		r.Quota = &rule.Quota{By: g.attribute(), Cases: map[string]int64{g.planned(): 5, g.planned(): 7}}
		if g.IntN(3) == 0 {
			r.Quota = &rule.Quota{Of: g.attribute(), Most: 1 + g.Int64N(9)}
		}
		if g.IntN(2) == 0 {
			r.Quota.Else = new(g.Int64N(9))
		}
	case 3:
		r.Quota = &rule.Quota{Value: g.Int64N(9)}
		r.CountDenied, r.Near = g.IntN(2) == 0, g.IntN(101)
		r.Then = g.pick("", "deny", "captcha")
		r.Feedback = map[string]int64{g.pick("solved", "erase1"): 1 + g.Int64N(9)}
		if g.IntN(4) == 0 {
			r.Feedback["all-of-it"] = window.All
		}
		if g.IntN(3) == 0 {
			r.Ban = window.Ban{For: time.Minute, Factor: g.Int64N(4), Most: time.Duration(g.IntN(3)) * time.Hour, Forget: time.Duration(g.IntN(3)) * time.Hour}
		}
		if g.IntN(3) == 0 {
			r.CountDenied = false
			r.Hold, r.Release, r.MaxHolds = time.Duration(1+g.IntN(9))*time.Second, g.IntN(2) > 0, g.IntN(3)
		}
	}
	for _, name := range g.some(g.IntN(3)) {
		r.Per = append(r.Per, name)
		r.Together = g.pick("", name)
	}
	if g.IntN(3) == 0 {
		r.Measure, r.Of = window.Measure(1+g.IntN(2)), g.word()
	}
	zone := g.zone()
	r.Window = g.window(zone)
	if g.IntN(4) == 0 {
		r.After = window.After{Count: 1 + g.Int64N(50), Window: g.window(zone)}
	}
	return r
}

// planned returns a value with a separate quota. It is neither of the two
// words that are keys in addition to such values.
func (g generator) planned() string {
	if w := g.word(); w != "by" && w != "else" {
		return w
	}
	return "free"
}

func (g generator) window(zone *time.Location) window.Window {
	length := time.Duration(1+g.IntN(100)) * [...]time.Duration{
		time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour, 1001 * time.Millisecond,
	}[g.IntN(6)]
	switch g.IntN(6) {
	case 0:
		return window.Window{Kind: window.KindSliding, Length: length, Precision: g.IntN(3) * 100}
	case 1:
		return window.Cells(length, g.IntN(3)*10)
	case 2:
		return window.Fixed(length)
	case 3:
		return window.Bucket(length, g.Int64N(20))
	case 4:
		return window.Aligned(max(length, time.Second))
	}
	w := window.Calendar(window.Period(1+g.IntN(6)), zone)
	if w.Period == window.Week || w.Period == window.Month {
		w.Anchor = g.IntN(8)
	}
	return w
}

// test returns any test that a rules file can express.
func (g generator) test(list rule.Test, depth int) rule.Test {
	if depth < 3 {
		switch g.IntN(8) {
		case 0, 1:
			return rule.Not(g.test(list, depth+1))
		case 2, 3:
			tests := make([]rule.Test, g.IntN(4))
			for i := range tests {
				tests[i] = g.test(list, depth+1)
			}
			return rule.All(tests...)
		}
	}
	some := func(n int) *float64 {
		if g.IntN(2) == 0 {
			return nil
		}
		return new(float64(g.IntN(n)-n/2) / 4)
	}
	switch g.IntN(9) {
	case 0:
		return rule.Present()
	case 1:
		return rule.Absent()
	case 2:
		return list
	case 3:
		return rule.Within(rule.Range{Above: some(9), From: new(float64(g.IntN(99)) - 60), Below: some(99), To: some(99)})
	case 4:
		return g.address()
	case 5:
		return rule.Prefix(g.pick("", g.word()))
	case 6:
		return rule.Suffix(g.pick("", g.word()))
	case 7:
		return g.pattern()
	}
	values := g.some(g.IntN(12))
	if g.IntN(4) == 0 {
		values = append(values, "")
	}
	return rule.Equal(values...)
}

func (g generator) address() rule.Test {
	patterns := []string{"10.0.0.0/8", "10.0.0.1", "fe80::1%eth0", "10.0.0.1-10.0.0.9", "::/0", "10.*.0.*"}
	g.Shuffle(len(patterns), func(i, j int) { patterns[i], patterns[j] = patterns[j], patterns[i] })
	of := rule.Address
	if g.IntN(2) == 0 {
		of = rule.LooseAddress
	}
	test, err := of(patterns[:g.IntN(len(patterns))]...)
	if err != nil {
		panic(err) // the patterns are right
	}
	return test
}

func (g generator) pattern() rule.Test {
	for {
		if test, err := rule.Pattern(g.pick("", "^a", "[0-9]+", `\d{1,3}: `, g.word())); err == nil {
			return test
		}
	}
}

// request returns a value for each of set's attributes, most of them values
// that the rules test for.
func (g generator) request(set *rule.Set) []string {
	values := make([]string, len(set.Attributes()))
	for i := range values {
		values[i] = g.pick("", g.word(), g.word(), g.word()+" ", fmt.Sprint(g.IntN(99)-60), "10.0.0.5", "-7.5")
	}
	return values
}
