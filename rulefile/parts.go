package rulefile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
)

// The YAML parser takes about a hundred times the size of a text. Rules in the usual layout are therefore parsed one by
// one, and again for the places of warnings and of what [rule.New] refuses.

var (
	listStart = regexp.MustCompile(`^rules:[ \t]*(#.*)?$`)
	listEnd   = regexp.MustCompile(`^(` + strings.Join(fileKeys, "|") + `):([ \t]|$)`)
)

// split returns the lines at which the second rule, each further one, and what follows the last begin. It returns nil if
// there are fewer rules, or if a line of the list has an indentation that leaves open to which rule it belongs.
func split(lines []string) (starts []int) {
	first := slices.IndexFunc(lines, listStart.MatchString) + 1
	if first == 0 {
		return nil
	}
	dash, end := -1, len(lines)
	for i := first; i < end; i++ {
		text := strings.TrimLeft(lines[i], " ")
		column := len(lines[i]) - len(text)
		switch {
		case text == "" || text[0] == '#':
		case strings.HasPrefix(text, "- ") && (dash < 0 || column == dash):
			starts, dash = append(starts, i), column
		case dash >= 0 && column > dash:
		case listEnd.MatchString(lines[i]):
			end = i
		default:
			return nil
		}
	}
	if len(starts) < 2 {
		return nil
	}
	return append(starts[1:], end)
}

// parts returns the file as a tree. If [split] finds further rules, the tree has only the first one.
func (p *pass) parts() *node {
	p.starts = split(p.lines)
	if p.starts == nil {
		return p.part(0, len(p.lines), wholeFile, nothing)
	}
	root, end := p.part(0, p.starts[0], wholeFile, aTable), p.starts[len(p.starts)-1]
	if root == nil || end == len(p.lines) {
		return root
	}
	rest := p.part(end, len(p.lines), wholeFile, aTable)
	if rest == nil {
		return nil
	}
	root.entries = append(root.entries, rest.entries...)
	return root
}

// size returns how many rules there are in the list of them.
func (p *pass) size(list *node) int { return len(list.items) + max(0, len(p.starts)-1) }

// item returns rule i of the list of rules, which has been read before.
func (p *pass) item(list *node, i int) *node {
	p.cost = cost{}
	return p.next(list, i)
}

// next returns rule i of the list of rules, or nil after recording why it is not YAML. All parts of a file have one bound
// of their costs.
func (p *pass) next(list *node, i int) *node {
	if at := i - len(list.items); at >= 0 {
		if list, i = p.part(p.starts[at], p.starts[at+1], list.label, aList), 0; list == nil {
			return nil
		}
	}
	list.items[i].label = "a rule"
	return list.items[i]
}

// part parses the lines from one to before another, which have to be of kind want, or of any kind if that is nothing.
// It returns nil after recording what is wrong.
func (p *pass) part(from, to int, label string, want kind) *node {
	text := strings.Join(p.lines[from:to], "\n")
	if to < len(p.lines) {
		text += "\n"
	}
	tokens := lexer.Tokenize(text)
	for _, t := range tokens {
		t.Position.Line += from
	}
	found := len(p.faults)
	if p.unwanted(tokens); len(p.faults) > found {
		return nil
	}
	if p.costly(tokens); len(p.faults) > found {
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		p.syntax(err)
		return nil
	}
	n := p.document(file, label)
	if n != nil && want != nothing && n.kind != want {
		p.fault(n, "%s", misfit)
		return nil
	}
	return n
}
