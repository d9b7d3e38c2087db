package rulewriter

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
)

// when returns the conditions of a rule by their attributes, and reports
// whether all of them trim. Several conditions on one attribute become one with
// all their tests.
func (w *writer) when(conditions []rule.Condition) (t table, trimmed bool) {
	var names []string
	trimmed = len(conditions) > 0
	for _, c := range conditions {
		trimmed = trimmed && c.Trim
		if !slices.Contains(names, c.Attribute) {
			names = append(names, c.Attribute)
		}
	}
	for _, name := range names {
		var tests []rule.Test
		trim, mixed := false, false
		for _, c := range conditions {
			if c.Attribute != name {
				continue
			}
			mixed = mixed || len(tests) > 0 && c.Trim != trim
			trim = c.Trim
			tests = append(tests, c.Test)
		}
		field := "when." + name
		if mixed {
			w.cannot(field, "one condition trims the value and another one does not: want the same for all on one attribute")
		}
		test := rule.All(tests...)
		if len(tests) == 1 {
			test = tests[0]
		}
		of := w.tests(field, test)
		v := short(of)
		if trim && !trimmed {
			v = append(of, pair{key: "trim", value: scalar("true")})
		}
		t = append(t, pair{key: text(name), value: v})
	}
	return t, trimmed
}

// test returns a test in its shortest form.
func (w *writer) test(field string, t rule.Test) value {
	return short(w.tests(field, t))
}

// short returns a table of tests, or a shorter value with the same meaning.
func short(of table) value {
	if len(of) != 1 {
		return of
	}
	switch key, v := of[0].key, of[0].value; {
	case key == "not" && v.flow() == "{absent: true}":
		return star
	case key == "equal" && !looksLikeTest(v):
		return v
	}
	return of
}

// looksLikeTest reports whether a text in v would match any value, or cause a warning, if it
// were written without equal.
func looksLikeTest(v value) bool {
	if v == star {
		return true
	}
	file, err := rulefile.Parse("", []byte("rules: [{name: a, then: deny, when: {a: "+v.flow()+"}}]"), nil)
	return err != nil || slices.ContainsFunc(file.Warnings(), func(w rulefile.Warning) bool { return strings.HasPrefix(w.Name, "literal-") })
}

// star matches any value, except after equal, where it is text.
const star = scalar(`"*"`)

// tests returns a test as a table that more tests can be added to. A rules file
// has no empty text and no empty list, so a test with one becomes another test
// that holds for the same values.
func (w *writer) tests(field string, t rule.Test) table {
	function, arguments, inner := rule.FormOf(t)
	if function == "" {
		w.cannot(field, "rules files have no test like %q", t)
		return nil
	}
	anything := is("match", text("^"))
	switch function {
	case "Equal":
		switch rest := slices.DeleteFunc(arguments, func(v string) bool { return v == "" }); {
		case len(rest) < len(arguments) && len(rest) == 0:
			return w.tests(field, rule.Absent())
		case len(rest) < len(arguments):
			return w.tests(field, rule.Not(rule.All(rule.Present(), rule.Not(rule.Equal(rest...)))))
		case len(rest) == 0:
			return is("not", anything)
		}
		return is("equal", oneOrMore(arguments))
	case "Address", "LooseAddress":
		if len(arguments) == 0 {
			return is("not", anything)
		}
		if function == "LooseAddress" {
			return is("loose_ip", oneOrMore(arguments))
		}
		return is("ip", oneOrMore(arguments))
	case "Present":
		return is("not", is("absent", scalar("true")))
	case "Absent":
		return is("absent", scalar("true"))
	case "Not":
		return is("not", w.test(field, inner[0]))
	case "All":
		if parts := w.parts(field, t); len(parts) > 0 {
			return together(parts)
		}
		return anything
	case "In":
		if list := arguments[0]; !w.lists[list] {
			w.cannot(field, "no list %q is given", list)
		}
		return is("in", text(arguments[0]))
	case "Within":
		return w.within(field, arguments)
	}
	if arguments[0] == "" {
		return anything
	}
	return is(textTests[function], text(arguments[0]))
}

var textTests = map[string]scalar{"Prefix": "prefix", "Suffix": "suffix", "Pattern": "match"}

// is returns a table with one test.
func is(key scalar, v value) table { return table{{key: key, value: v}} }

// parts returns the tests that t consists of, without repetitions.
func (w *writer) parts(field string, t rule.Test) (parts []table) {
	function, _, tests := rule.FormOf(t)
	if function != "All" {
		return []table{w.tests(field, t)}
	}
	seen := map[string]bool{}
	for _, inner := range tests {
		for _, part := range w.parts(field, inner) {
			if text := part.flow(); !seen[text] {
				seen[text] = true
				parts = append(parts, part)
			}
		}
	}
	return parts
}

// together returns several tests in one table if their keys allow it.
func together(parts []table) table {
	var one table
	several := make(list, len(parts))
	apart := false
	for i, part := range parts {
		for _, p := range part {
			stands := func(other pair) bool { return other.key == p.key }
			apart = apart || p.key == "absent" || slices.ContainsFunc(one, stands)
		}
		one = append(one, part...)
		several[i] = short(part)
	}
	if apart && len(parts) > 1 {
		return is("all", several)
	}
	return one
}

// within returns bounds, which alternate names and numbers.
func (w *writer) within(field string, bounds []string) (t table) {
	for b := range slices.Chunk(bounds, 2) {
		n, err := strconv.ParseFloat(b[1], 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			w.cannot(field, "%s is %s, want a number", b[0], b[1])
		}
		digits := -1 // as few as needed
		if n == math.Trunc(n) {
			digits = 0
		}
		t = append(t, pair{key: scalar(b[0]), value: scalar(strconv.FormatFloat(n, 'f', digits, 64))})
	}
	if t == nil {
		w.cannot(field, "a number without bounds: want at least one of above, from, below and to")
	}
	return t
}

// oneOrMore returns one text by itself, or a list.
func oneOrMore(all []string) value {
	if len(all) == 1 {
		return text(all[0])
	}
	return texts(all)
}
