// Package rulefmt formats rules files. It changes white space only: comments, quotes, and the order
// of keys stay.
package rulefmt

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/weirhq/weir/fault"
)

// Format returns the text of a rules file in its usual form. Tables and lists are indented by two
// spaces, also a list below its key. Within brackets there is one space after each comma and colon,
// and none beside the brackets. Lines end without spaces, and at most one empty line follows
// another one. src is a rules file without faults. The error is a [fault.Fault] with the place of
// a value that would change; name is the file in it.
func Format(name string, src []byte) ([]byte, error) {
	text := strings.TrimPrefix(string(src), "\ufeff")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	f := formatter{lines: strings.Split(text, "\n")}
	f.tokens = make([][]*token.Token, len(f.lines))
	tokens := lexer.Tokenize(text)
	for i, t := range tokens {
		if i > 0 && blockStart(tokens[i-1]) {
			continue // the text of a block
		}
		if at := t.Position.Line - 1; at >= 0 && at < len(f.lines) {
			f.tokens[at] = append(f.tokens[at], t)
		}
	}
	out := f.format()
	now := lexer.Tokenize(out)
	for i, t := range tokens {
		if i >= len(now) || !same(t, now[i]) {
			if i > 0 && blockStart(tokens[i-1]) {
				t = tokens[i-1]
			}
			at := fault.Place{File: name, Line: t.Position.Line, Column: t.Position.Column}
			if at.Line >= 1 && at.Line <= len(f.lines) {
				at.Source = f.lines[at.Line-1]
			}
			return nil, &fault.Fault{Place: at, Problem: "cannot be formatted, because this value would change: write it in one line, or in quotes"}
		}
	}
	return []byte(out), nil
}

// same reports whether two tokens have the same meaning.
func same(a, b *token.Token) bool {
	if a.Type == token.CommentType {
		return b.Type == a.Type && strings.TrimRight(a.Value, " \t") == strings.TrimRight(b.Value, " \t")
	}
	return a.Type == b.Type && a.Value == b.Value
}

// formatter formats the lines of one file.
type formatter struct {
	lines  []string
	tokens [][]*token.Token // that start in each line
	next   int              // the first line after the last comment in which a value starts
	levels []level          // the tables and lists around the line
	depth  int              // of brackets
	out    []string
}

// level is a table or a list in lines of their own.
type level struct {
	from, to int // its column, from 0
	list     bool
}

func (f *formatter) format() string {
	shift := 0 // of the last line with a token
	for i := 0; i < len(f.lines); i++ {
		line := strings.TrimRight(f.lines[i], " \t")
		column := indent(line)
		switch tokens := f.tokens[i]; {
		case line == "":
			f.empty()
		case f.depth > 0 || len(tokens) == 0: // the line goes on with what stands above it
			f.put(column+shift, f.spaced(i, column))
		case tokens[0].Type == token.CommentType:
			f.put(f.commentColumn(i, column), line[column:])
		default:
			to := f.place(tokens, column)
			shift = to - column
			f.put(to, f.spaced(i, column))
			if slices.ContainsFunc(tokens, blockStart) {
				i = f.block(i, shift)
			}
		}
	}
	for len(f.out) > 0 && f.out[len(f.out)-1] == "" {
		f.out = f.out[:len(f.out)-1]
	}
	return strings.Join(f.out, "\n") + "\n"
}

// put adds a line.
func (f *formatter) put(column int, text string) {
	f.out = append(f.out, strings.Repeat(" ", max(0, column))+text)
}

// empty adds an empty line, but not after another one.
func (f *formatter) empty() {
	if n := len(f.out); n > 0 && f.out[n-1] != "" {
		f.out = append(f.out, "")
	}
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// place returns the new column of a line, and enters and leaves levels.
func (f *formatter) place(tokens []*token.Token, column int) (to int) {
	first := true
	for _, t := range tokens {
		list := t.Type == token.SequenceEntryType
		at := t.Position.Column - 1
		if first {
			at = column
		}
		n := f.enter(at, list)
		if first {
			to, first = n, false
		}
		if !list {
			break
		}
	}
	return to
}

// enter returns the new column of what stands at a column, in its own level.
func (f *formatter) enter(from int, list bool) (to int) {
	for n := len(f.levels); n > 0; n = len(f.levels) {
		l := f.levels[n-1]
		if l.from == from && l.list == list {
			return l.to
		}
		if l.from < from || l.from == from && list && !l.list {
			break // a list may stand in the column of its key
		}
		f.levels = f.levels[:n-1]
	}
	if n := len(f.levels); n > 0 {
		to = f.levels[n-1].to + 2
	}
	f.levels = append(f.levels, level{from, to, list})
	return to
}

// commentColumn returns the new column of a line that is a comment: that of the next line, or that of
// the level in which it stands.
func (f *formatter) commentColumn(i, column int) int {
	for f.next = max(f.next, i+1); f.next < len(f.lines) && f.isComment(f.next); f.next++ {
	}
	to := 0
	if f.next < len(f.lines) {
		at, levels := indent(f.lines[f.next]), slices.Clone(f.levels)
		to = f.enter(at, f.tokens[f.next][0].Type == token.SequenceEntryType)
		f.levels = levels
		if column == at {
			return to
		}
	}
	for _, l := range f.levels {
		if l.from == column {
			return l.to
		}
	}
	return to
}

// isComment reports whether no value starts in line i.
func (f *formatter) isComment(i int) bool {
	return len(f.tokens[i]) == 0 || f.tokens[i][0].Type == token.CommentType
}

// blockStart reports whether a text in lines of its own follows t.
func blockStart(t *token.Token) bool {
	return t.Type == token.LiteralType || t.Type == token.FoldedType
}

// block adds the lines of a text below line i, and returns the last of them.
func (f *formatter) block(i, shift int) (last int) {
	around := 0
	if n := len(f.levels); n > 0 {
		around = f.levels[n-1].from
	}
	last = i
	for next := i + 1; next < len(f.lines); next++ {
		line := f.lines[next]
		if strings.TrimSpace(line) != "" && indent(line) <= around {
			break
		}
		last = next
	}
	for n := i + 1; n <= last; n++ {
		if line := f.lines[n]; strings.TrimSpace(line) == "" {
			f.out = append(f.out, "")
		} else {
			f.put(indent(line)+shift, line[indent(line):])
		}
	}
	return last
}

// spaced returns line i from a column on, with the usual spaces between its tokens.
func (f *formatter) spaced(i, column int) string {
	line := strings.TrimRight(f.lines[i], " \t")[column:]
	var b strings.Builder
	rest, before := line, (*token.Token)(nil)
	for _, t := range f.tokens[i] {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			f.depth++
		case token.MappingEndType, token.SequenceEndType:
			f.depth--
		}
		text, _, _ := strings.Cut(strings.TrimSpace(t.Origin), "\n")
		at := strings.Index(rest, text)
		if at < 0 || before != nil && strings.TrimSpace(rest[:at]) != "" {
			rest, before = line, nil // another text than the lexer's
			b.Reset()
			continue
		}
		if before == nil {
			b.WriteString(rest[:at]) // the end of a text from above
		} else {
			b.WriteString(gap(before, t, rest[:at]))
		}
		b.WriteString(text)
		rest, before = rest[at+len(text):], t
	}
	return strings.TrimRight(b.String()+rest, " \t")
}

// gap returns the space between two tokens.
func gap(a, b *token.Token, now string) string {
	switch b.Type {
	case token.CommentType:
		return now
	case token.CollectEntryType, token.MappingValueType, token.MappingEndType, token.SequenceEndType:
		return ""
	}
	switch a.Type {
	case token.MappingStartType, token.SequenceStartType:
		return ""
	case token.CollectEntryType, token.MappingValueType, token.SequenceEntryType:
		return " "
	}
	return now
}
