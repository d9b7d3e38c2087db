package rule_test

import (
	"reflect"
	"testing"

	"github.com/weirhq/weir/rule"
)

func TestFormOf(t *testing.T) {
	t.Parallel()
	must := must(t)
	five, nine := 5.0, 9.5
	staff := list(t, "ann")
	for _, tt := range []struct {
		test rule.Test
		want rule.Form
	}{
		{rule.Equal("a", "b"), rule.Form{Kind: rule.FormEqual, Values: []string{"a", "b"}}},
		{rule.Present(), rule.Form{Kind: rule.FormPresent}},
		{rule.Absent(), rule.Form{Kind: rule.FormAbsent}},
		{rule.Not(rule.Absent()), rule.Form{Kind: rule.FormNot, Tests: []rule.Test{rule.Absent()}}},
		{rule.All(rule.Present(), rule.Prefix("a")), rule.Form{Kind: rule.FormAll, Tests: []rule.Test{rule.Present(), rule.Prefix("a")}}},
		{rule.In(staff), rule.Form{Kind: rule.FormIn, List: staff}},
		{rule.Within(rule.Range{}), rule.Form{Kind: rule.FormWithin}},
		{rule.Within(rule.Range{Above: &five, To: &nine}), rule.Form{Kind: rule.FormWithin, Range: rule.Range{Above: &five, To: &nine}}},
		{rule.Within(rule.Range{From: &five, Below: &nine}), rule.Form{Kind: rule.FormWithin, Range: rule.Range{From: &five, Below: &nine}}},
		{must(rule.LooseAddress("10.0.0.0/8", "::1")), rule.Form{Kind: rule.FormLooseAddress, Values: []string{"10.0.0.0/8", "::1"}}},
		{must(rule.Address("10.0.0.0/8", "::1")), rule.Form{Kind: rule.FormAddress, Values: []string{"10.0.0.0/8", "::1"}}},
		{rule.Prefix("/a"), rule.Form{Kind: rule.FormPrefix, Text: "/a"}},
		{rule.Suffix("a/"), rule.Form{Kind: rule.FormSuffix, Text: "a/"}},
		{must(rule.Pattern("^a$")), rule.Form{Kind: rule.FormPattern, Text: "^a$"}},
	} {
		got, ok := rule.FormOf(tt.test)
		if !ok || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, %v, want %+v", tt.test, got, ok, tt.want)
		}
	}
	if got, ok := rule.FormOf(counting{new(int)}); ok {
		t.Errorf("a test of another package: got %+v, want none", got)
	}
	if got, ok := rule.FormOf(nil); ok {
		t.Errorf("no test: got %+v, want none", got)
	}
}
