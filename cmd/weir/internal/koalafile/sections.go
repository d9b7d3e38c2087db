package koalafile

import (
	"strings"
)

// section identifies one of the three parts of a rule file.
type section int

const (
	none section = iota
	dicts
	rules
	results
)

var sectionNames = map[string]section{"[dicts]": dicts, "[rules]": rules, "[result]": results}

// entry is one line of a section, neither empty nor a comment.
type entry struct {
	number  int // from 1
	text    string
	comment string // the comment lines directly above, without #
}

// piece returns the whole line, trimmed.
func (e entry) piece() piece { return piece{text: e.text}.trim() }

// sections returns the lines of src by section.
func (p *pass) sections(src []byte) map[section][]entry {
	found := map[section][]entry{}
	var comment []string
	in, last := none, none
	seen := map[section]int{}
	text := strings.TrimPrefix(string(src), "\ufeff")
	for number, line := range splitLines(text) {
		p.here = entry{number: number, text: line, comment: strings.Join(comment, "\n")}
		s := p.here.piece()
		head, known := sectionNames[strings.ToLower(s.text)]
		switch {
		case s.text == "":
			comment = nil
			continue
		case s.text[0] == '#':
			comment = append(comment, strings.ToValidUTF8(strings.TrimSpace(strings.TrimLeft(s.text, "#")), "\ufffd"))
			continue
		case known && seen[head] > 0:
			p.fault(s, "section %s appears twice, first in line %d: want one", s.text, seen[head])
			in = head
		case known:
			in, seen[head] = head, number
			if in < last {
				p.warn(s, "koala needed [dicts], [rules] and [result] in this order, and found no rules behind [result]; weir accepts any order")
			}
			last = max(last, in)
		case s.text[0] == '[' && strings.IndexByte(s.text, ']') == len(s.text)-1:
			p.fault(s, "unknown section %s: want [dicts], [rules] or [result]", s.text)
		case in == none:
			p.fault(s, "the line is in no section: want [dicts], [rules] or [result] in a line above it, or # before it")
		default:
			found[in] = append(found[in], p.here)
		}
		comment = nil
	}
	if len(found[rules]) == 0 { // a truncated file must not lift every limit
		p.here = entry{number: max(seen[rules], 1)}
		p.fault(piece{}, "no rules: want a line [rules], and rules below it")
	}
	return found
}

// splitLines iterates over the lines of text, numbered from 1.
func splitLines(text string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		number, more := 0, true
		for more {
			var line string
			line, text, more = strings.Cut(text, "\n")
			number++
			if !yield(number, strings.TrimSuffix(line, "\r")) {
				return
			}
		}
	}
}
