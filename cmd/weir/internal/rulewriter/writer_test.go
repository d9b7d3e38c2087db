package rulewriter_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/rulewriter"
	"github.com/weirhq/weir/internal/datatest"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/window"
)

func ExampleWrite() {
	src, err := rulewriter.Write(&rulewriter.Draft{
		Head:  "Made by hand.",
		Lists: []rulewriter.List{{Name: "staff", Values: []string{"ann", "bob"}, Comment: "Who works here."}},
		Rules: []rule.Rule{{
			Name:   "posts-per-hour",
			When:   []rule.Condition{{Attribute: "action", Test: rule.Equal("post", "reply")}},
			Per:    []string{"user"},
			Quota:  &rule.Quota{Value: 5},
			Window: window.Sliding(time.Hour),
		}},
		Comments: map[string]string{"posts-per-hour": "Five an hour,\nfor each user."},
	})
	fmt.Printf("%s%v\n", src, err)
	// Output:
	// # Made by hand.
	//
	// lists:
	//   # Who works here.
	//   staff: {values: [ann, bob]}
	//
	// rules:
	//   # Five an hour,
	//   # for each user.
	//   - name: posts-per-hour
	//     when: {action: [post, reply]}
	//     per: [user]
	//     limit: 5
	//     window: 1h
	// <nil>
}

// TestWriteRefuses checks that everything which no rules file can express is
// reported.
func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	list, err := rule.In("staff", nil)
	if err != nil {
		t.Fatal(err)
	}
	far := math.Inf(1)
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	when := func(tests ...rule.Test) rulewriter.Draft {
		r := rule.Rule{Name: "r", Then: rule.Deny}
		for i, test := range tests {
			r.When = append(r.When, rule.Condition{Attribute: "a", Test: test, Trim: i > 0})
		}
		return rulewriter.Draft{Rules: []rule.Rule{r}}
	}
	limit := func(q rule.Quota, w window.Window, a window.After) rulewriter.Draft {
		return rulewriter.Draft{Rules: []rule.Rule{{Name: "r", Quota: &q, Window: w, After: a}}}
	}
	day := window.Calendar(window.Day, nil)
	for _, tt := range []struct {
		draft rulewriter.Draft
		want  string
	}{
		{when(foreign{}), `rule "r": when.a: rules files have no test like "is a test of another package"`},
		{when(rule.Present(), rule.Present()), `rule "r": when.a: one condition trims the value and another one does not`},
		{when(rule.Not(list)), `rule "r": when.a: no list "staff" is given`},
		{when(rule.Within(rule.Range{})), `rule "r": when.a: a number without bounds`},
		{when(rule.Within(rule.Range{Above: &far})), "no number is above +Inf"},
		{when(rule.Not(rule.Within(rule.Range{Above: &far}))), `rule "r": when.a: above is +Inf, want a number`},
		{when(rule.Equal("a\xff")), "a rules file cannot say all of this: what was written:3:1: the line is not UTF-8 text"},
		{limit(rule.Quota{By: "plan", Cases: map[string]int64{"else": 1}}, day, window.After{}), `rule "r": limit: a quota for plan "else"`},
		{limit(rule.Quota{}, day, window.After{Count: 1, Window: window.Calendar(window.Day, shanghai)}), `rule "r": timezone: its windows follow UTC and Asia/Shanghai`},
		{limit(rule.Quota{}, window.Calendar(window.Day, time.FixedZone("here", 60)), window.After{}), `unknown timezone "here"`},
		{rulewriter.Draft{Rules: []rule.Rule{{Name: "r"}}}, `rule "r": window: is missing`},
	} {
		src, err := rulewriter.Write(&tt.draft)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %q, %v, want an error with %q", src, err, tt.want)
		}
	}

	both := when(foreign{}, rule.Within(rule.Range{}))
	var joined interface{ Unwrap() []error }
	if _, err := rulewriter.Write(&both); !errors.As(err, &joined) || len(joined.Unwrap()) != 3 {
		t.Errorf("got %v, want three faults at once", err)
	}
}

// foreign is a test that package rule did not make.
type foreign struct{}

func (foreign) Holds(string) bool { return true }
func (foreign) String() string    { return "is a test of another package" }

// TestWriteComments: whatever stands in a comment stays in it.
func TestWriteComments(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a\r\nb\rc", "\n\n", "- x: [", "\x00\xff\u2028\u0085 \t", "# b", "é 北京"} {
		d := rulewriter.Draft{
			Head:     text,
			Rules:    []rule.Rule{{Name: "r", Then: rule.Deny}, {Name: "s", Then: rule.Deny}},
			Comments: map[string]string{"r": text, "s": text, "no rule": text},

			Lists:           []rulewriter.List{{Name: "l", Comment: text}},
			Outcomes:        map[string]rule.Outcome{"o": {}},
			OutcomeComments: map[string]string{"o": text},
		}
		src, err := rulewriter.Write(&d)
		if err != nil {
			t.Errorf("%q: got %v, want no error", text, err)
		}
		lines := 0
		for line := range strings.Lines(string(src)) {
			if strings.HasPrefix(strings.TrimSpace(line), "#") {
				lines++
			}
		}
		if lines == 0 || lines%5 != 0 {
			t.Errorf("%q: got\n%s\nwant as many lines of comment at each of five places", text, src)
		}
	}
}

// TestScripts runs testdata/*.txt: `write` reads a rules file and shows it as it is
// written back.
func TestScripts(t *testing.T) {
	t.Parallel()
	datatest.Walk(t, "testdata/*.txt", func(t *testing.T, path string) {
		datatest.RunTest(t, path, func(_ *testing.T, d *datatest.TestData) string { return writeBack(d.Input + "\n") })
	})
}

// writeBack reads a rules file and writes it again, with its lists as files.
func writeBack(src string) string {
	lists := map[string]string{}
	f, err := rulefile.Parse("rules.yaml", []byte(src), func(path string) ([]byte, error) {
		lists[strings.TrimSuffix(path, ".txt")] = path
		return nil, nil
	})
	if err != nil {
		return err.Error()
	}
	d := rulewriter.Draft{Zone: f.Zone, Addresses: f.Set.Compiled().Addresses(), Outcomes: map[string]rule.Outcome{}}
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		d.Lists = append(d.Lists, rulewriter.List{Name: name, File: lists[name]})
	}
	for i := range f.Set.Len() {
		r := f.Set.Rule(i)
		d.Rules = append(d.Rules, *r)
		if o, ok := f.Set.Outcome(r.Then); ok && r.Then != rule.Allow && r.Then != rule.Deny {
			d.Outcomes[r.Then] = o
		}
	}
	text, err := rulewriter.Write(&d)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
