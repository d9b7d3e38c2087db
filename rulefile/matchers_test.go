package rulefile_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
)

// matchers has tests in YAML by the matcher that they are about.
var matchers = map[string][]string{
	"equal": {"{equal: a}", "{equal: [a, ab]}"}, "not": {"{not: a}", "{not: {prefix: a}}", `{not: "*"}`},
	"all": {"{all: [{prefix: a}, {suffix: b}]}", "{all: [{not: a}, {not: ab}]}"}, "in": {"{in: l}"},
	"above": {"{above: 1}"}, "below": {"{below: 3}"}, "from": {"{from: 1}", "{from: 1, to: 3}"}, "to": {"{to: 3}"},
	"ip": {"{ip: 192.0.2.0/24}", "{ip: 192.0.2.1}"}, "loose_ip": {"{loose_ip: 192.0.2.*}"},
	"prefix": {"{prefix: a}", "{prefix: ab}"}, "suffix": {"{suffix: b}", "{suffix: ab}"}, "match": {"{match: ^a}", "{match: b$}"},
	"absent": {"{absent: true}"}, "trim": {"{trim: true, equal: a}"},
}

// TestEveryMatcher checks what the rules file, its schema and its linter know about each
// matcher, so that a new one is missed nowhere.
func TestEveryMatcher(t *testing.T) {
	t.Parallel()
	want := slices.Sorted(slices.Values(rulefile.Keys()["definitions/matcher"]))
	if got := slices.Sorted(maps.Keys(matchers)); !slices.Equal(got, want) {
		t.Fatalf("got examples of %v, want of each matcher: %v", got, want)
	}
	values := []string{"", "a", "ab", "b", "1", "2", "3", "4", "192.0.2.1", "192.0.2.77", "198.51.100.1", "x"}
	const lists = "lists: {l: {values: [a, ab]}}\n"
	when := map[string]rule.Test{}
	for name, examples := range matchers {
		for _, example := range examples {
			src := lists + "rules:\n  - {name: first, then: deny, when: {x: " + example + "}}\n  - {name: second, then: allow, when: {x: " + example + "}}\n"
			file, err := rulefile.Parse("rules.yaml", []byte(src), nil)
			if err != nil {
				t.Errorf("%s: got\n%v", example, err)
				continue
			}
			if err := validate(t, []byte(src)); err != nil {
				t.Errorf("%s: got %v, want it in the schema", example, err)
			}
			if !slices.ContainsFunc(file.Warnings(), func(w rulefile.Warning) bool { return w.Name == "dead-rule" }) {
				t.Errorf("%s: got no warning about a rule after a verdict with the same condition", example)
			}
			test := file.Set.Rule(0).When[0].Test
			if function, _, _ := rule.FormOf(test); function == "" {
				t.Errorf("%s: got a test without a form", example)
			}
			if name != "trim" {
				when[example] = test
			}
		}
		// Punctuation of an input method is a fault, or a warning tells about it.
		file, err := rulefile.Parse("rules.yaml", []byte("rules: [{name: a, then: deny, when: {x: {"+name+": ab，c}}}]"), nil)
		if err == nil && !slices.ContainsFunc(file.Warnings(), func(w rulefile.Warning) bool { return w.Name == "full-width" }) {
			t.Errorf("%s: got no warning about a full-width comma", name)
		}
	}
	for a, stricter := range when {
		for b, test := range when {
			for _, v := range values {
				if rulefile.Stricter(stricter, test) && stricter.Holds(v) && !test.Holds(v) {
					t.Errorf("%s implies %s for the linter, want not: %q passes only the first", a, b, v)
				}
			}
		}
	}
}
