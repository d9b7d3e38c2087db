package rule

import (
	"math"
	"slices"
)

// FormKind identifies the function of this package that made a test.
type FormKind uint8

const (
	FormEqual        FormKind = iota // [Equal] of Values
	FormPresent                      // [Present]
	FormAbsent                       // [Absent]
	FormNot                          // [Not] of the only one of Tests
	FormAll                          // [All] of Tests
	FormIn                           // [In] List
	FormWithin                       // [Within] Range
	FormAddress                      // [Address] of Values
	FormPrefix                       // [Prefix] Text
	FormSuffix                       // [Suffix] Text
	FormPattern                      // [Pattern] Text
	FormLooseAddress                 // [LooseAddress] of Values
)

// Form describes how a test was made: the function, and its arguments. A program
// can use it to write the test down.
type Form struct {
	Kind   FormKind
	Values []string
	Text   string
	Tests  []Test
	List   *List
	Range  Range // an infinite bound is nil
}

// FormOf returns the form of t. The form shares no slices with t. FormOf returns
// false for a test that this package did not make.
func FormOf(t Test) (Form, bool) {
	switch t := t.(type) {
	case equal:
		return Form{Kind: FormEqual, Values: slices.Clone(t.values)}, true
	case presence:
		if t {
			return Form{Kind: FormPresent}, true
		}
		return Form{Kind: FormAbsent}, true
	case not:
		return Form{Kind: FormNot, Tests: []Test{t.test}}, true
	case all:
		return Form{Kind: FormAll, Tests: slices.Clone(t)}, true
	case in:
		return Form{Kind: FormIn, List: t.list}, true
	case within:
		return Form{Kind: FormWithin, Range: t.bounds()}, true
	case address:
		f := Form{Kind: FormAddress, Values: slices.Clone(t.patterns)}
		if t.loose {
			f.Kind = FormLooseAddress
		}
		return f, true
	case prefix:
		return Form{Kind: FormPrefix, Text: string(t)}, true
	case suffix:
		return Form{Kind: FormSuffix, Text: string(t)}, true
	case pattern:
		return Form{Kind: FormPattern, Text: t.re.String()}, true
	}
	return Form{}, false
}

// bounds returns the range that w was made of.
func (w within) bounds() (r Range) {
	if w.strictAbove {
		r.Above = &w.above
	}
	if w.strictBelow {
		r.Below = &w.below
	}
	if !math.IsInf(w.from, -1) {
		r.From = &w.from
	}
	if !math.IsInf(w.to, 1) {
		r.To = &w.to
	}
	return r
}
