package koalafile

import (
	"iter"
	"strings"
	"unicode"
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
	for number, line := range splitLines(string(src)) {
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
				p.warn(s, "koala needed [dicts], [rules] and [result] in this order, and found no rules after [result]; weir accepts any order")
			}
			last = max(last, in)
		case s.text[0] == '[' && strings.IndexByte(s.text, ']') == len(s.text)-1:
			seen[none] = number
			p.fault(s, "unknown section %s: want [dicts], [rules] or [result]", s.text)
		case in == none:
			p.fault(s, "the line is in no section: want [dicts], [rules] or [result] in a line above it, or # before it")
		default:
			found[in] = append(found[in], p.here)
		}
		comment = nil
	}
	switch {
	case len(seen) == 0 && len(p.faults) > 0: // a file of another format has no fault for each line
		p.faults, p.here = nil, entry{number: 1}
		p.fault(piece{}, "no rule file of koala: no line is [dicts], [rules] or [result]")
	case len(found[rules]) == 0: // a truncated file must not lift every limit
		p.here = entry{number: max(seen[rules], 1)}
		p.fault(piece{}, "no rules: want a line [rules], and rules below it")
	}
	return found
}

// splitLines iterates over the lines of text, numbered from 1, without a byte order
// mark before the first one.
func splitLines(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		number := 0
		for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
			if number++; !yield(number, strings.TrimSuffix(line, "\r")) {
				return
			}
		}
	}
}

// piece is a part of a line, with its position for faults.
type piece struct {
	text string
	at   int // in the line, in bytes
}

// from and to return the parts of s after and before byte i.
func (s piece) from(i int) piece { return piece{s.text[i:], s.at + i} }
func (s piece) to(i int) piece   { return piece{s.text[:i], s.at} }

// trim returns s without blanks at its ends.
func (s piece) trim() piece {
	right := strings.TrimRightFunc(s.text, isBlank)
	left := strings.TrimLeftFunc(right, isBlank)
	return piece{left, s.at + len(right) - len(left)}
}

// isBlank reports whether a condition's Trim cuts r.
func isBlank(r rune) bool { return unicode.IsSpace(r) }

// without returns s without the characters of cutset, and then blanks, at its
// ends.
func (s piece) without(cutset string) piece {
	left := strings.TrimLeft(s.text, cutset)
	return piece{strings.TrimRight(left, cutset), s.at + len(s.text) - len(left)}.trim()
}

// cut returns the parts of s before and after the first sep, trimmed.
func (s piece) cut(sep string) (before, after piece, found bool) {
	i := strings.Index(s.text, sep)
	if i < 0 {
		return s.trim(), s.from(len(s.text)), false
	}
	return s.to(i).trim(), s.from(i + len(sep)).trim(), true
}

// split returns the parts of s between seps, trimmed, without empty ones.
func (s piece) split(sep string) []piece {
	var parts []piece
	for more := true; more; {
		var part piece
		part, s, more = s.cut(sep)
		if part.text != "" {
			parts = append(parts, part)
		}
	}
	return parts
}
