package rule_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

func TestFormOf(t *testing.T) {
	t.Parallel()
	must := must(t)
	five, nine := 5.0, 9.5
	for _, tt := range []struct {
		test      rule.Test
		function  string
		arguments []string
		tests     []rule.Test
	}{
		{rule.Equal("a", "b"), "Equal", []string{"a", "b"}, nil},
		{rule.Present(), "Present", nil, nil},
		{rule.Absent(), "Absent", nil, nil},
		{rule.Not(rule.Absent()), "Not", nil, []rule.Test{rule.Absent()}},
		{rule.All(rule.Present(), rule.Prefix("a")), "All", nil, []rule.Test{rule.Present(), rule.Prefix("a")}},
		{list(t, "ann"), "In", []string{"staff"}, nil},
		{rule.Within(rule.Range{}), "Within", nil, nil},
		{rule.Within(rule.Range{Above: &five, To: &nine}), "Within", []string{"above", "5", "to", "9.5"}, nil},
		{rule.Within(rule.Range{From: &five, Below: &nine}), "Within", []string{"from", "5", "below", "9.5"}, nil},
		{must(rule.LooseAddress("10.0.0.0/8", "::1")), "LooseAddress", []string{"10.0.0.0/8", "::1"}, nil},
		{must(rule.Address("10.0.0.0/8", "::1")), "Address", []string{"10.0.0.0/8", "::1"}, nil},
		{rule.Prefix("/a"), "Prefix", []string{"/a"}, nil},
		{rule.Suffix("a/"), "Suffix", []string{"a/"}, nil},
		{must(rule.Pattern("^a$")), "Pattern", []string{"^a$"}, nil},
		{counting{new(int)}, "", nil, nil},
		{nil, "", nil, nil},
	} {
		function, arguments, tests := rule.FormOf(tt.test)
		if function != tt.function || !slices.Equal(arguments, tt.arguments) || !slices.Equal(tests, tt.tests) {
			t.Errorf("%v: got %s %q %v, want %s %q %v", tt.test, function, arguments, tests, tt.function, tt.arguments, tt.tests)
		}
	}
}

// TestEveryTestHasForm checks that FormOf knows each type of test, so that importers, the linter
// and explanations know a new matcher, too.
func TestEveryTestHasForm(t *testing.T) {
	t.Parallel()
	forms, err := os.ReadFile("matcher_form.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("matcher_*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	holds := regexp.MustCompile(`(?m)^func \((?:\w+ )?\*?(\w+)\) Holds\(`)
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, m := range holds.FindAllStringSubmatch(string(src), -1) {
			found++
			if !strings.Contains(string(forms), "case "+m[1]+":") {
				t.Errorf("FormOf has no case for %s", m[1])
			}
		}
	}
	if found < 9 {
		t.Errorf("got %d tests, want all of the package", found)
	}
}
