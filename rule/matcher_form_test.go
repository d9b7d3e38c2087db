package rule_test

import (
	"slices"
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
