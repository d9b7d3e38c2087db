package rulefile_test

import (
	"os"
	"strings"
	"testing"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rulefile"
)

// rulesForTests returns a loader of the rules file of test files.
func rulesForTests(t testing.TB) func(string) (*rulefile.File, error) {
	t.Helper()
	file, err := rulefile.Load("../cmd/weir/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return func(string) (*rulefile.File, error) { return file, nil }
}

// TestTestSchema compares the schema of test files with the parser: it accepts what parses, and
// refuses files of another structure.
func TestTestSchema(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"posts", "calendar"} {
		src, err := os.ReadFile("ruletest/testdata/" + name + "_test.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := validateBy(t, testsSchema, src); err != nil {
			t.Errorf("%s: got %v, want a valid file", name, err)
		}
	}
	for _, src := range []string{
		"cases: []", "rules: rules.yaml", "cases: [{steps: [{wait: 1s}]}]", "cases: [{name: a, steps: []}]",
		"cases: [{name: a, steps: [{takes: {user: 1}}]}]", "cases: [{name: a, steps: [{take: [user]}]}]",
		"cases: [{name: a, steps: [{take: {user: 1}, repeat: 0}]}]", "cases: [{name: a, steps: [{take: {user: 1}, hits: -1}]}]",
		"cases: [{name: a, steps: [{take: {user: 1}, expect: {allowed: maybe}}]}]",
		"cases: [{name: a, steps: [{take: {user: 1}, expect: {limits: {posts-per-hour: {usd: 1}}}}]}]",
	} {
		if _, err := rulefile.ParseTests("a_test.yaml", []byte(src), rulesForTests(t)); err == nil {
			t.Errorf("%s: got no fault, want one", src)
		}
		if err := validateBy(t, testsSchema, []byte(src)); err == nil {
			t.Errorf("%s: got a valid file, want an invalid one", src)
		}
	}
	all := `cases: [{name: a, start: 2026-03-01T12:00, timezone: Europe/Berlin, steps: [
		{at: 0, take: {action: post, user: 42, n: 1.5, b: true}, hits: 2, repeat: 3, every: 1s, expect: {allowed: true, outcome: allow,
			rule: none, retry_after: 0, retry_rule: none, unmatched: false, matched: [posts-per-hour], verdicts: [], triggered: [],
			admitted: 3, denied: 0, limits: {posts-per-hour: {allowed: true, key: 42, quota: 5, used: 1, remaining: 4, retry_after: never, reset_after: 1h}}}},
		{wait: 2 months}, {check: {}}, {record: {user: 1}}, {refund: {user: 1}, hits: 2}, {forget: {user: 1}, of: posts-per-hour},
		{at: 2027-01-01, take: {sum: x}, expect: {error: whole}}]}]`
	if _, err := rulefile.ParseTests("a_test.yaml", []byte(all), rulesForTests(t)); err != nil {
		t.Errorf("got\n%v\nwant no fault", err)
	}
	if err := validateBy(t, testsSchema, []byte(all)); err != nil {
		t.Errorf("got %v, want a valid file", err)
	}
}

// TestRulesAreNoTests checks that a rules file in place of a test file is one fault that says so.
func TestRulesAreNoTests(t *testing.T) {
	t.Parallel()
	_, err := rulefile.ParseTests("rules.yaml", []byte("timezone: UTC\nrules: [{name: a, then: deny}]"), rulesForTests(t))
	if faults := fault.Of(err); len(faults) != 1 || !strings.Contains(faults[0].Problem, "weir check checks rules files") {
		t.Errorf("got %v, want one fault that names weir check", err)
	}
}

// FuzzParseTests checks that no text makes the parser panic, and that the steps of what it
// accepts are ordered by time.
func FuzzParseTests(f *testing.F) {
	for _, name := range []string{"posts", "calendar"} {
		src, err := os.ReadFile("ruletest/testdata/" + name + "_test.yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Add([]byte("cases: [{name: a, steps: [{take: {a: b}, repeat: 1000000, every: 36500d}, {wait: 100 years}, {wait: 100 years}]}]"))
	f.Add([]byte("cases: [{name: a, start: 2200-12-31T23:59, steps: [{wait: 9999 years}, {at: 36500d}]}]"))
	load := rulesForTests(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		tests, err := rulefile.ParseTests("a_test.yaml", src, load)
		if err != nil {
			return
		}
		for _, c := range tests.Cases {
			last := c.Start
			for _, s := range c.Steps {
				if s.At.Before(last) {
					t.Errorf("%s: got a step at %v after one at %v", c.Name, s.At, last)
				}
				last = s.At
			}
		}
	})
}
