package rulefile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
)

// Draft is the content of a rules file to write with [Write]. All fields except
// Rules can be empty.
type Draft struct {
	// Rules and Outcomes are the arguments of [rule.New].
	Rules    []rule.Rule
	Outcomes map[string]rule.Outcome

	// Lists holds the lists that the rules test against, in the order in which
	// to write them.
	Lists []ListSource

	// Zone is the file's time zone; nil means UTC.
	Zone *time.Location

	// Unmatched is the outcome of requests that no rule matches. Empty means
	// allow.
	Unmatched string

	// Addresses are the attributes that are read as IP addresses
	// ([rule.Set.WithAddresses]).
	Addresses []string

	// Head is the comment at the start of the file. Comments and OutcomeComments
	// hold the comments above rules and outcomes, by the name of the rule or the
	// outcome. A comment is one or more lines without #.
	Head            string
	Comments        map[string]string
	OutcomeComments map[string]string
}

// ListSource states where the entries of a list come from: from a list file, or
// from the rules file itself.
type ListSource struct {
	Name    string
	File    string   // path of the list file, as the rules file should name it
	Values  []string // the entries, if File is empty
	Comment string   // the comment above the list: lines without #
}

// Write returns a rules file with the content of d. [Parse] reads it as the same
// rules with the same identities ([rule.Rule]). A test can become another test
// that holds for the same values.
//
// The error contains a [fault.List]: that of [rule.New], or one fault for each part
// of d that a rules file cannot express, such as a test that package rule did not
// make.
func Write(d *Draft) ([]byte, error) {
	if _, err := rule.New(d.Rules, d.Outcomes); err != nil {
		return nil, err
	}
	w := writer{zone: d.Zone, given: map[string]bool{}}
	var b strings.Builder
	comment(&b, "", d.Head)
	if w.zone == nil {
		w.zone = time.UTC
	}
	if w.zone != time.UTC {
		(pair{"timezone", text(w.zone.String())}).write(&b, "")
	}
	if d.Unmatched != "" {
		(pair{"unmatched", text(d.Unmatched)}).write(&b, "")
	}
	if !slices.Equal(slices.Sorted(slices.Values(d.Addresses)), defaultAddresses) && mentions(d.Rules, append(defaultAddresses, d.Addresses...)) {
		(pair{"addresses", names(d.Addresses)}).write(&b, "")
	}
	section(&b, "lists", w.lists(d.Lists))
	section(&b, "outcomes", outcomes(d.Outcomes, d.OutcomeComments))
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	if len(d.Rules) == 0 {
		b.WriteString("rules: []\n")
	} else {
		b.WriteString("rules:\n")
	}
	for i := range d.Rules {
		if i > 0 {
			b.WriteByte('\n')
		}
		comment(&b, "  ", d.Comments[d.Rules[i].Name])
		w.rule = d.Rules[i].Name
		item(&b, "  ", w.ruleTable(&d.Rules[i]))
	}
	if err := w.list.Err(); err != nil {
		return nil, err
	}
	src := []byte(b.String())
	// The reader finds other faults, such as text that is not UTF-8.
	if _, err := Parse("what was written", src, func(string) ([]byte, error) { return nil, nil }); err != nil {
		return nil, fmt.Errorf("a rules file cannot say all of this: %w", err)
	}
	return src, nil
}

// mentions reports whether one of rules uses an attribute in names.
func mentions(rules []rule.Rule, names []string) bool {
	named := func(name string) bool { return slices.Contains(names, name) }
	return slices.ContainsFunc(rules, func(r rule.Rule) bool {
		return slices.ContainsFunc(r.Per, named) || named(r.Of) || r.Quota != nil && named(r.Quota.By) ||
			slices.ContainsFunc(r.When, func(c rule.Condition) bool { return named(c.Attribute) })
	})
}

// writer is one run of Write. Its methods note what a rules file cannot express
// and continue, so that one run finds all of it.
type writer struct {
	zone  *time.Location
	given map[string]bool // the names of the lists
	rule  string          // name of the rule that is being written
	list  fault.List      // what cannot be expressed
}

// cannot notes that a field of the rule cannot be expressed.
func (w *writer) cannot(field, format string, args ...any) {
	f := fault.Newf(field, format, args...)
	f.Rule = w.rule
	w.list = append(w.list, f)
}

// comment writes lines as comments.
func comment(b *strings.Builder, indent, lines string) {
	if lines == "" {
		return
	}
	lines = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(lines, "\ufffd"))
	for _, line := range strings.Split(strings.TrimRight(lines, "\n"), "\n") {
		line = fault.Printable(line)
		b.WriteString(strings.TrimRight(indent+"# "+line, " \t") + "\n")
	}
}

// commented is a key with its value and the comment above it.
type commented struct {
	comment string
	pair
}

// section writes one of the tables at the top of the file.
func section(b *strings.Builder, key string, all []commented) {
	if len(all) == 0 {
		return
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	b.WriteString(key + ":\n")
	for _, c := range all {
		comment(b, "  ", c.comment)
		c.write(b, "  ")
	}
}

// lists returns the table of lists.
func (w *writer) lists(lists []ListSource) (all []commented) {
	for _, l := range lists {
		w.given[l.Name] = true
		source := pair{"values", texts(l.Values)}
		if l.File != "" {
			source = pair{"file", text(l.File)}
		}
		all = append(all, commented{l.Comment, pair{text(l.Name), table{source}}})
	}
	return all
}

// outcomes returns the table of outcomes.
func outcomes(by map[string]rule.Outcome, comments map[string]string) (all []commented) {
	for _, name := range sorted(by) {
		o, of := by[name], table{}
		if o.Allow {
			of = append(of, pair{"allow", scalar("true")})
		}
		if o.Status != 0 {
			of = append(of, number("status", int64(o.Status)))
		}
		if len(o.Body) > 0 {
			of = append(of, pair{"body", body(o.Body)})
		}
		all = append(all, commented{comments[name], pair{text(name), of}})
	}
	return all
}
