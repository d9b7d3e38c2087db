package rulefile

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
)

// Draft is what [Write] makes a rules file of. Only Rules must be there.
type Draft struct {
	// Rules and Outcomes are what [rule.New] makes a set of.
	Rules    []rule.Rule
	Outcomes map[string]rule.Outcome

	// Lists are the lists that the rules test against, in the file's order.
	Lists []ListSource

	// Zone becomes the file's time zone; nil is UTC.
	Zone *time.Location

	// Head is a comment at the start of the file, Comments and OutcomeComments
	// are those above the rules and outcomes with these names: lines, without #.
	Head            string
	Comments        map[string]string
	OutcomeComments map[string]string
}

// ListSource is where a list has its values from: from a file, by its path as
// the rules file is to name it, or, where that is empty, from Values.
type ListSource struct {
	Name    string
	File    string
	Values  []string
	Comment string // lines above it, without #
}

// Write is the rules file that says what d says: [Parse] makes the same rules
// of it, with the same identities. A test may come back in other words that
// hold for the same values.
//
// The error is a [fault.List] when d's rules are no set, and names every place
// that no rules file can say: a test that package rule did not make, say.
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
	if w.errs != nil {
		return nil, errors.Join(w.errs...)
	}
	src := []byte(b.String())
	// What is left, such as text that is not UTF-8, the reader finds.
	if _, err := Parse("what was written", src, func(string) ([]byte, error) { return nil, nil }); err != nil {
		return nil, fmt.Errorf("a rules file cannot say all of this: %w", err)
	}
	return src, nil
}

// writer is one run of Write. Its methods note what cannot be written and go
// on, so that one run finds all of it.
type writer struct {
	zone  *time.Location
	given map[string]bool // the names of the lists
	rule  string          // that is being written
	errs  []error
}

// cannot notes what of the rule cannot be written.
func (w *writer) cannot(field, format string, args ...any) {
	w.errs = append(w.errs, fmt.Errorf("rule %q: %s: %s", w.rule, field, fmt.Sprintf(format, args...)))
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
