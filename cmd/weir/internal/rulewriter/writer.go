// Package rulewriter writes rules files, for the importers and for weir suggest.
package rulewriter

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
)

// Draft is the content of a rules file to write with [Write]. All fields except
// Rules can be empty. A comment is one or more lines without #.
type Draft struct {
	// Rules and Outcomes are the arguments of [rule.New].
	Rules    []rule.Rule
	Outcomes map[string]rule.Outcome

	Lists []List         // the lists that the rules test against, in the order of the file
	Zone  *time.Location // the file's time zone; nil means UTC

	Addresses []string // the attributes that are read as IP addresses ([rule.Set.WithAddresses])

	Head            string            // the comment at the start of the file
	Comments        map[string]string // above rules, by their names
	OutcomeComments map[string]string // above outcomes, by their names
}

// List states where the entries of a list come from: from a list file, or from the
// rules file itself.
type List struct {
	Name    string
	File    string   // path of the list file, as the rules file should name it
	Values  []string // the entries, if File is empty
	Comment string   // the comment above the list
}

// Write returns a rules file with the content of d. [rulefile.Parse] reads it as the same
// rules with the same identities. A test can become another test that holds for the
// same values.
//
// The error contains a [fault.List]: that of [rule.New], or one fault for each part
// of d that a rules file cannot express, such as a test that package rule did not
// make.
func Write(d *Draft) ([]byte, error) {
	if _, err := rule.New(d.Rules, d.Outcomes); err != nil {
		return nil, err
	}
	w := writer{zone: d.Zone, lists: map[string]bool{}}
	if w.zone == nil {
		w.zone = time.UTC
	}
	w.comment("", d.Head)
	if w.zone != time.UTC {
		w.pair("", pair{key: "timezone", value: text(w.zone.String())})
	}
	const byDefault = "ip" // what files without the key addresses read as an address
	w.ipIsAddress = slices.Contains(d.Addresses, byDefault)
	if named := append([]string{byDefault}, d.Addresses...); !slices.Equal(d.Addresses, named[:1]) && mentions(d.Rules, named) {
		w.pair("", pair{key: "addresses", value: texts(d.Addresses)})
	}
	w.section("lists", w.listTable(d.Lists))
	w.section("outcomes", outcomes(d))
	if w.Len() > 0 {
		w.WriteByte('\n')
	}
	if len(d.Rules) == 0 {
		w.WriteString("rules: []\n")
	} else {
		w.WriteString("rules:\n")
	}
	for i := range d.Rules {
		if i > 0 {
			w.WriteByte('\n')
		}
		w.rule = d.Rules[i].Name
		w.comment("  ", d.Comments[w.rule])
		w.item("  ", w.ruleTable(&d.Rules[i]))
	}
	if err := w.faults.Err(); err != nil {
		return nil, err
	}
	src := []byte(w.String())
	// The reader finds other faults, such as text that is not UTF-8.
	if _, err := rulefile.Parse("what was written", src, func(string) ([]byte, error) { return nil, nil }); err != nil {
		return nil, fmt.Errorf("a rules file cannot say all of this: %w", err)
	}
	return src, nil
}

// mentions reports whether one of rules uses an attribute in names.
func mentions(rules []rule.Rule, names []string) bool {
	named := func(name string) bool { return slices.Contains(names, name) }
	return slices.ContainsFunc(rules, func(r rule.Rule) bool {
		return slices.ContainsFunc(r.Per, named) || named(r.Of) || r.Quota != nil && named(r.Quota.Attribute()) ||
			slices.ContainsFunc(r.When, func(c rule.Condition) bool { return named(c.Attribute) })
	})
}

// writer is one run of Write. Its methods record what a rules file cannot express and continue,
// so that one run finds all of it.
type writer struct {
	layout
	zone        *time.Location
	lists       map[string]bool // by name
	rule        string          // name of the rule that is being written
	faults      fault.List      // what cannot be expressed
	ipIsAddress bool            // in the file that is written
}

// cannot records that a field of the rule cannot be expressed.
func (w *writer) cannot(field, format string, args ...any) {
	f := fault.Newf(field, format, args...)
	f.Rule = w.rule
	w.faults = append(w.faults, f)
}

func (w *writer) listTable(lists []List) (t table) {
	for _, l := range lists {
		w.lists[l.Name] = true
		source := pair{key: "values", value: texts(l.Values)}
		if l.File != "" {
			source = pair{key: "file", value: text(l.File)}
		}
		t = append(t, pair{text(l.Name), table{source}, l.Comment})
	}
	return t
}

func outcomes(d *Draft) (t table) {
	for _, name := range sorted(d.Outcomes) {
		o, of := d.Outcomes[name], table{}
		of.add(o.Allow, "allow", scalar("true"))
		of.count("status", int64(o.Status))
		if len(o.Body) > 0 {
			of.add(true, "body", body(o.Body))
		}
		t = append(t, pair{text(name), of, d.OutcomeComments[name]})
	}
	return t
}
