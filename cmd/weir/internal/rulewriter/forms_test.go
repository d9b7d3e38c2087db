package rulewriter_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/rulewriter"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
)

// TestEveryForm writes a test of each form that rule.FormOf has, and reads it again.
func TestEveryForm(t *testing.T) {
	t.Parallel()
	one := 1.0
	made := func(test rule.Test, err error) rule.Test {
		if err != nil {
			t.Fatal(err)
		}
		return test
	}
	list, err := rule.In("staff", []string{"ann"})
	tests := []rule.Test{
		rule.Equal("a"), rule.Present(), rule.Absent(), rule.Not(rule.Equal("a")), rule.All(rule.Prefix("a"), rule.Suffix("b")), made(list, err),
		rule.Within(rule.Range{Above: &one}), made(rule.Address("192.0.2.0/24")), made(rule.LooseAddress("192.0.2.1")), rule.Prefix("a"),
		rule.Suffix("b"), made(rule.Pattern("^a")),
	}
	source, err := os.ReadFile("../../../../rule/matcher_form.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`return "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		i := slices.IndexFunc(tests, func(test rule.Test) bool { f, _, _ := rule.FormOf(test); return f == m[1] })
		if i < 0 {
			t.Errorf("no test here has the form %s", m[1])
			continue
		}
		src, err := rulewriter.Write(&rulewriter.Draft{
			Lists: []rulewriter.List{{Name: "staff", Values: []string{"ann"}}},
			Rules: []rule.Rule{{Name: "a", When: []rule.Condition{{Attribute: "x", Test: tests[i]}}, Then: "deny"}},
		})
		if err != nil {
			t.Errorf("%s: %v", m[1], err)
			continue
		}
		file, err := rulefile.Parse("rules.yaml", src, nil)
		if err != nil {
			t.Errorf("%s: got\n%v\nfor\n%s", m[1], err, src)
			continue
		}
		for _, v := range []string{"", "a", "ab", "b", "1", "2", "ann", "192.0.2.1", "192.0.2.7"} {
			if got, want := file.Set.Rule(0).When[0].Test.Holds(v), tests[i].Holds(v); got != want {
				t.Errorf("%s: got %v for %q, want %v:\n%s", m[1], got, v, want, src)
			}
		}
	}
}
