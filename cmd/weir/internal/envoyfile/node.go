package envoyfile

import (
	"errors"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Resource limits of one file.
const (
	maxSource = 16 << 20 // bytes
	maxDepth  = 64       // of brackets, of tables in tables, and of descriptors
	maxColumn = 1024     // the indentation
	maxNodes  = 1 << 20  // values, after aliases are replaced
)

// node is a YAML value and its place. Aliases and merge keys are replaced.
type node struct {
	kind         kind
	line, column int
	text         string // of a scalar
	items        []*node
	entries      []entry // of a table; of two with the same key the last one counts
}

type entry struct{ key, value *node }

// kind is the type of a value.
type kind uint8

const (
	nothing kind = iota
	aText
	aNumber // whole
	aFraction
	aBoolean
	aList
	aTable
)

var kindNames = [...]string{"empty", "text", "a number", "a number with a fraction", "true or false", "a list", "a table"}

// String returns the description of n in faults.
func (n *node) String() string {
	if n.kind == aNumber || n.kind == aFraction || n.kind == aBoolean {
		return n.text
	}
	return kindNames[n.kind]
}

// get returns the value of a key, or nil.
func (n *node) get(key string) *node {
	for i := len(n.entries) - 1; i >= 0; i-- {
		if n.entries[i].key.text == key {
			return n.entries[i].value
		}
	}
	return nil
}

// source returns the first document in src as a tree, or nil when a fault makes
// that impossible or there is none.
func (p *pass) source(src []byte) *node {
	if len(src) > maxSource {
		p.at(1, 1, "the file has %d MiB, want at most %d", len(src)>>20, maxSource>>20)
		return nil
	}
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(string(src), "\ufeff"))
	p.lines = strings.Split(text, "\n")
	for i, line := range p.lines {
		if !utf8.ValidString(line) {
			p.at(i+1, 1, "the line is not UTF-8 text: save the file as UTF-8")
			return nil
		}
	}
	tokens := lexer.Tokenize(text)
	if p.deep(tokens) {
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		p.syntax(err)
		return nil
	}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			t := tree{pass: p, anchors: map[string]ast.Node{}, open: map[ast.Node]bool{}}
			return t.of(doc.Body, 0)
		}
	}
	return nil
}

// deep reports nesting that is too deep for the YAML parser, which recurses.
func (p *pass) deep(tokens token.Tokens) bool {
	depth := 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth = max(0, depth-1)
		case token.SequenceEntryType, token.MappingValueType:
			if depth == 0 && t.Position.Column > maxColumn {
				depth = maxDepth + 1
			}
		}
		if depth > maxDepth {
			p.at(t.Position.Line, t.Position.Column, "nested too deep: want at most %d brackets within each other, and lines indented by at most %d", maxDepth, maxColumn)
			return true
		}
	}
	return false
}

// syntax records the fault at which the YAML parser stopped.
func (p *pass) syntax(err error) {
	var e yaml.Error
	if !errors.As(err, &e) || e.GetToken() == nil {
		p.at(1, 1, "not YAML: %v", err)
		return
	}
	at := e.GetToken().Position
	p.at(at.Line, at.Column, "not YAML: %s", e.GetMessage())
}

// tree makes a tree of nodes.
type tree struct {
	*pass
	anchors map[string]ast.Node
	open    map[ast.Node]bool // anchors that are being read
	made    int
}

// of returns n, below depth others. After too many values it returns empty ones.
func (t *tree) of(n ast.Node, depth int) *node {
	at := n.GetToken().Position
	to := &node{line: at.Line, column: at.Column}
	if t.made++; t.made > maxNodes || depth > 4*maxDepth {
		if t.made > 0 {
			t.at(at.Line, at.Column, "too large: want at most %d values, nested at most %d deep", maxNodes, 4*maxDepth)
			t.made = math.MinInt // once
		}
		return to
	}
	if t.made < 0 {
		return to
	}
	switch v := n.(type) {
	case *ast.AnchorNode:
		t.anchors[v.Name.GetToken().Value] = v.Value
		return t.of(v.Value, depth+1)
	case *ast.AliasNode:
		return t.alias(v, depth)
	case *ast.TagNode:
		if v.Value == nil {
			return to
		}
		return t.of(v.Value, depth+1)
	case *ast.MappingNode:
		to.kind = aTable
		for _, e := range v.Values {
			t.entry(to, e, depth)
		}
	case *ast.MappingValueNode:
		to.kind = aTable
		t.entry(to, v, depth)
	case *ast.SequenceNode:
		to.kind = aList
		for _, item := range v.Values {
			to.items = append(to.items, t.of(item, depth+1))
		}
	case *ast.LiteralNode:
		to.kind, to.text = aText, v.Value.Value
	case *ast.StringNode:
		to.kind, to.text = aText, v.Value
		if tt := v.GetToken().Type; tt != token.SingleQuoteType && tt != token.DoubleQuoteType {
			to.scalar(v.Value)
		}
	default:
		to.scalar(n.GetToken().Value)
	}
	if to.kind == aTable && len(to.entries) > 0 {
		if k := to.entries[0].key; k.line < to.line || k.line == to.line && k.column < to.column {
			to.line, to.column = k.line, k.column // not that of the first colon
		}
	}
	return to
}

// alias returns the value of an alias.
func (t *tree) alias(v *ast.AliasNode, depth int) *node {
	at := v.GetToken().Position
	name := v.Value.GetToken().Value
	of, ok := t.anchors[name]
	if !ok || t.open[of] {
		t.at(at.Line, at.Column, "*%s: no such anchor above it", name)
		return &node{line: at.Line, column: at.Column}
	}
	t.open[of] = true
	defer delete(t.open, of)
	n := *t.of(of, depth+1)
	n.line, n.column = at.Line, at.Column
	return &n
}

// entry adds one key and its value to a table. The keys of a merged table do not
// replace others.
func (t *tree) entry(to *node, e *ast.MappingValueNode, depth int) {
	value := t.of(e.Value, depth+1)
	if _, merge := e.Key.(*ast.MergeKeyNode); merge {
		all := []*node{value}
		if value.kind == aList {
			all = value.items
		}
		for _, m := range all {
			for _, more := range m.entries {
				if to.get(more.key.text) == nil {
					to.entries = append([]entry{more}, to.entries...)
				}
			}
		}
		return
	}
	to.entries = append(to.entries, entry{t.of(e.Key, depth+1), value})
}

var (
	whole    = regexp.MustCompile(`^[-+]?[0-9][0-9_]*$|^0(x[0-9a-fA-F]+|o?[0-7]+|b[01]+)$`)
	fraction = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$`)
	truths   = regexp.MustCompile(`^(y|Y|yes|Yes|YES|on|On|ON|true|True|TRUE|n|N|no|No|NO|off|Off|OFF|false|False|FALSE)$`)
)

// scalar sets n to a plain scalar, by YAML 1.1, as the reference service reads it.
func (n *node) scalar(s string) {
	n.kind, n.text = aText, s
	switch {
	case s == "" || s == "~" || s == "null" || s == "Null" || s == "NULL":
		n.kind, n.text = nothing, ""
	case truths.MatchString(s):
		n.kind = aBoolean
	case whole.MatchString(s):
		n.kind = aNumber
	case fraction.MatchString(s):
		n.kind = aFraction
	}
}

// truth returns the value of a boolean.
func (n *node) truth() bool {
	switch strings.ToLower(n.text) {
	case "y", "yes", "on", "true":
		return true
	}
	return false
}
