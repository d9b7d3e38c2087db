package rulefile

import (
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
)

// partLines is about how many lines of a long list of rules are parsed at once. A parsed text has about 100 times its
// size, so that five megabytes in one piece take half a gigabyte, and twice as much until they are collected.
const partLines = 1024

// listStart matches the line of the list that can be long.
var listStart = regexp.MustCompile(`^rules:[ \t]*(#.*)?$`)

// firstPart parses a long file with the first items of its rules only, and sets p.rest to what parses the other
// items, about most lines at a time. It returns nil if the file is short, or if anything about it is unusual or at
// fault; then the caller parses the file as a whole, which names the faults.
//
// A part begins at a line with a dash at the indentation of the list's first one. Such a line begins an
// item unless it is in a text in quotes or in brackets, and then the part before it does not end
// either and is at fault.
func (p *pass) firstPart(most int) *node {
	if len(p.lines) <= 2*most {
		return nil
	}
	first := -1
	for i, line := range p.lines {
		if listStart.MatchString(line) {
			if first >= 0 {
				return nil
			}
			first = i + 1
		}
	}
	if first < 0 {
		return nil
	}
	for first < len(p.lines) && isBlank(p.lines[first]) {
		first++
	}
	if first == len(p.lines) {
		return nil
	}
	dash := p.lines[first][:strings.IndexFunc(p.lines[first], func(r rune) bool { return r != ' ' })] + "- "
	if !strings.HasPrefix(p.lines[first], dash) {
		return nil
	}
	cuts, end := []int{first}, len(p.lines)
	for i := first; i < len(p.lines); i++ {
		line := p.lines[i]
		isItem := strings.HasPrefix(line, dash)
		if !isItem && !isBlank(line) && line[0] != ' ' {
			end = i
			break
		}
		if isItem && i-cuts[len(cuts)-1] >= most {
			cuts = append(cuts, i)
		}
	}
	if len(cuts) == 1 {
		return nil
	}
	// Empty lines keep the places of what follows the list.
	rest := strings.Repeat("\n", end-cuts[1])
	root := p.part(strings.Join(p.lines[:cuts[1]], "\n")+"\n"+rest+strings.Join(p.lines[end:], "\n"), 0, wholeFile)
	if root == nil || root.kind != aTable {
		return nil
	}
	list := root.get("rules")
	if list == nil || list.kind != aList {
		return nil
	}
	for i, from := range cuts[1:] {
		to := end
		if i+2 < len(cuts) {
			to = cuts[i+2]
		}
		p.rest = append(p.rest, func() *node {
			part := p.part(strings.Join(p.lines[from:to], "\n"), from, list.label)
			if part == nil || part.kind != aList || part.column != list.column {
				return nil
			}
			return part
		})
	}
	return root
}

// isBlank reports whether a line is empty or a comment.
func isBlank(line string) bool {
	line = strings.TrimLeft(line, " ")
	return line == "" || line[0] == '#'
}

// part parses a text that follows so many lines. It returns nil if the text is at fault or has
// more than one document.
func (p *pass) part(text string, lines int, label string) *node {
	tokens := lexer.Tokenize(text)
	for _, t := range tokens {
		t.Position.Line += lines
	}
	if p.unwanted(tokens); len(p.faults) > 0 {
		p.faults = nil
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil || len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil
	}
	return p.tree(file.Docs[0].Body, label)
}
