package rulefile

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

const (
	// maxSource is the maximum size of a rules file, in bytes. Ten thousand rules
	// need about one million.
	maxSource = 16 << 20
	// maxDepth is the maximum nesting of brackets, and maxColumn the maximum
	// indentation. Both are checked before the YAML parser runs, because it
	// recurses.
	maxDepth  = 64
	maxColumn = 1024

	// maxSiblings and maxNulls bound what takes the YAML parser time that grows with the square of the size: the keys
	// of a table in lines, and values that are left out. At these limits it takes a second or two.
	maxSiblings = 10_000
	maxNulls    = 40_000

	// maxDocuments bounds the documents, each of which takes the YAML parser time that grows with the number of tokens. More than
	// one is a fault unless the others are empty.
	maxDocuments = 100

	// maxBlank bounds the blank lines in a row. Behind text that begins with | or >, the YAML parser copies the text for each.
	maxBlank = 100

	// maxPaths bounds the bytes of the paths to all values, of which the parser keeps one for each. Files may have
	// averagePath for each token beside that.
	maxPaths    = 64 << 20
	averagePath = 128
)

// refused lists the parts of YAML that rules files do not support, and what to
// write instead.
var refused = map[token.Type]string{
	token.AliasType:      `* has its own meaning in YAML: in quotes, "*", it stands for any value; aliases (*name) are not supported, write the value out`,
	token.AnchorType:     `anchors (&name) are not supported: write the value out at each place; a text that starts with & needs quotes`,
	token.TagType:        `tags (!name) are not supported: leave it out; a text that starts with ! needs quotes`,
	token.MergeKeyType:   `merge keys (<<) are not supported: write the keys out`,
	token.DirectiveType:  `directives (%NAME) are not supported: leave the line out`,
	token.MappingKeyType: `keys after ? are not supported: write "key: value"`,
}

// source returns src as a tree, or nil when a fault makes that impossible.
func (p *pass) source(src []byte) *node {
	if len(src) > maxSource {
		p.at(1, 1, "the file has %d MiB, want at most %d", len(src)>>20, maxSource>>20)
		return nil
	}
	text := strings.TrimPrefix(string(src), "\ufeff")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	p.lines = strings.Split(text, "\n")
	blank := 0
	for i, line := range p.lines {
		if !utf8.ValidString(line) {
			p.at(i+1, 1, "the line is not UTF-8 text: save the file as UTF-8")
			return nil
		}
		if blank++; strings.TrimSpace(line) != "" {
			blank = 0
		}
		if blank > maxBlank {
			p.at(i+1, 1, "too many blank lines in a row: want at most %d", maxBlank)
			return nil
		}
	}
	return p.parts()
}

// unwanted records the tokens that rules files do not support, and nesting that is too deep.
func (p *pass) unwanted(tokens token.Tokens) {
	depth, documents := 0, 0
	for _, t := range tokens {
		at := t.Position
		if why, ok := refused[t.Type]; ok {
			p.at(at.Line, at.Column, "%s", why)
		}
		deep := false
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
			deep = depth > maxDepth
		case token.SequenceEndType, token.MappingEndType:
			depth = max(0, depth-1)
		case token.SequenceEntryType:
			if depth > 0 {
				p.at(at.Line, at.Column, "a dash within brackets: separate values with commas, as [a, b]")
				return
			}
			deep = at.Column > maxColumn
		case token.MappingValueType:
			deep = depth == 0 && at.Column > maxColumn
		case token.DocumentHeaderType, token.DocumentEndType:
			if documents++; documents > maxDocuments {
				p.at(at.Line, at.Column, "too many documents: write one document a file, without --- between")
				return
			}
		}
		if deep {
			p.at(at.Line, at.Column, "nested too deep: want at most %d brackets within each other, and lines indented by at most %d", maxDepth, maxColumn)
			return
		}
	}
}

// costly records a fault if the YAML parser would take too long or too much memory. A table in lines takes time that grows
// with the square of its keys, each value that is left out takes time that grows with the number of tokens, and each value
// has the path to it.
func (p *pass) costly(tokens token.Tokens) {
	var levels []level // around the current token, the innermost last
	brackets := 0      // those of them
	paths := 0
	for i, t := range tokens {
		at, inner := t.Position, innermost(levels)
		end := i+1 == len(tokens) || closes(tokens[i+1].Type)
		empty := func(column int) bool {
			return end || brackets == 0 && tokens[i+1].Position.Line > at.Line && tokens[i+1].Position.Column <= column
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			brackets++
			levels = append(levels, level{column: math.MaxInt, keys: t.Type == token.MappingStartType, before: inner.path, path: inner.path + indexBytes})
		case token.CollectEntryType, token.MappingEndType, token.SequenceEndType:
			if brackets == 0 {
				continue
			}
			if inner.keys && !inner.colon {
				p.cost.nulls += int64(len(tokens))
			}
			if inner.colon, inner.path = false, inner.before+indexBytes; t.Type != token.CollectEntryType {
				brackets--
				levels = levels[:len(levels)-1]
			}
		case token.SequenceEntryType:
			levels = enter(levels, 2*at.Column+1) // may be in the column of the keys around it
			if empty(at.Column) {
				p.cost.nulls += int64(len(tokens))
			}
		case token.MappingValueType:
			key, column := 0, at.Column
			if i > 0 {
				if key = len(tokens[i-1].Value); tokens[i-1].Position.Line == at.Line {
					column = tokens[i-1].Position.Column
				}
			}
			if empty(column) {
				p.cost.nulls += int64(len(tokens))
			}
			if brackets == 0 {
				levels = enter(levels, 2*column)
				inner = innermost(levels)
				p.cost.squares += 2*inner.n + 1
				inner.n++
			}
			inner.colon, inner.path = true, inner.before+indexBytes+key
		}
		paths += innermost(levels).path
		switch {
		case p.cost.squares > maxSiblings*maxSiblings:
			p.at(at.Line, at.Column, "too many keys in lines: want at most %d in a table; write more of them in braces, as {a: 1, b: 2}", maxSiblings)
			return
		case p.cost.nulls > maxNulls*3*maxNulls:
			p.at(at.Line, at.Column, "too many values are left out: write them")
			return
		case paths > maxPaths+averagePath*len(tokens):
			p.at(at.Line, at.Column, "too many values below long keys: make the keys around them shorter")
			return
		}
	}
}

// cost is what bounds the time of the YAML parser, over all parts of a file that it parses.
type cost struct {
	squares int   // of the numbers of keys of tables in lines
	nulls   int64 // values that are left out, times the tokens
}

// level is an open bracket, a table in lines, or a list in lines.
type level struct {
	column int // twice that of its keys, or of its dashes and one more
	n      int // keys so far
	keys   bool
	colon  bool // behind the current key

	before, path int // the bytes of the path to it, and of that to its current value
}

// indexBytes is about the size of the place in a list in a path.
const indexBytes = 8

// innermost returns the last of levels, or an empty one.
func innermost(levels []level) *level {
	if len(levels) == 0 {
		return &level{}
	}
	return &levels[len(levels)-1]
}

// enter leaves the levels in lines beyond a column, and enters the one in that column.
func enter(levels []level, column int) []level {
	for len(levels) > 0 && innermost(levels).column > column && innermost(levels).column != math.MaxInt {
		levels = levels[:len(levels)-1]
	}
	inner := innermost(levels)
	if inner.column == column {
		inner.path = inner.before + indexBytes
		return levels
	}
	return append(levels, level{column: column, before: inner.path, path: inner.path + indexBytes})
}

// closes reports whether a token ends a value in brackets.
func closes(t token.Type) bool {
	return t == token.CollectEntryType || t == token.MappingEndType || t == token.SequenceEndType
}

// syntax records the fault at which the YAML parser stopped.
func (p *pass) syntax(err error) {
	var e yaml.Error
	if !errors.As(err, &e) || e.GetToken() == nil {
		p.at(1, 1, "not YAML: %v", err)
		return
	}
	at := e.GetToken().Position
	if line, column, found := p.wideColonNear(at.Line); found {
		p.at(line, column, "not YAML%s", wideColon)
		return
	}
	if line, column, found := p.noBreakNear(at.Line); found {
		p.at(line, column, "not YAML%s", noBreak)
		return
	}
	why := "not YAML: " + e.GetMessage()
	if strings.Contains(why, "'\t'") {
		why = "a tab stands where YAML allows only spaces: indent with spaces"
	}
	if strings.Contains(why, "not allowed in this context") {
		why = misfit
	}
	p.at(at.Line, at.Column, "%s", why)
}

// misfit is the problem of a line with the wrong indentation.
const misfit = "the line does not fit the lines above it: indent the keys of a table alike, and the keys below a key by more"

// wholeFile is the label of the root of a document.
const wholeFile = "the file"

// document returns the tree of the one document in a rules file, or in a part of it. Faults call it label.
func (p *pass) document(file *ast.File, label string) *node {
	var root *node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		n := p.tree(doc.Body, label)
		if root != nil {
			p.at(n.line, n.column, "a second document starts here: write one document a file, without --- between")
			return nil
		}
		root = n
	}
	if root == nil {
		p.at(1, 1, "the file is empty: want at least %s", p.smallest)
	}
	return root
}

// tree converts n. Faults call it label.
func (p *pass) tree(n ast.Node, label string) *node {
	t := n.GetToken()
	to := &node{label: label, line: t.Position.Line, column: t.Position.Column}
	switch v := n.(type) {
	case *ast.MappingNode:
		to.kind = aTable
		for _, e := range v.Values {
			to.entries = append(to.entries, p.entry(e))
		}
	case *ast.MappingValueNode:
		to.kind = aTable
		to.entries = []entry{p.entry(v)}
	case *ast.SequenceNode:
		to.kind = aList
		for _, item := range v.Values {
			to.items = append(to.items, p.tree(item, label))
		}
	case *ast.LiteralNode:
		to.kind, to.text, to.quoted = aText, v.Value.Value, true
	case *ast.StringNode:
		to.quoted = t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
		to.scalar(v.Value)
	default:
		to.scalar(t.Value)
	}
	if to.kind == aTable && len(to.entries) > 0 {
		// The place of a table without braces would be its first colon.
		first := to.entries[0].key
		if before(first.line, first.column, to.line, to.column) {
			to.line, to.column = first.line, first.column
		}
	}
	return to
}

// entry converts one key and its value.
func (p *pass) entry(e *ast.MappingValueNode) entry {
	key := p.tree(e.Key, "a key")
	value := p.tree(e.Value, key.text)
	value.key = key
	return entry{key, value}
}

// node is a YAML value and its place.
type node struct {
	label        string // name in faults: the key of which it is the value
	key          *node  // that key; nil in a list and for the whole document
	kind         kind
	line, column int // from 1; a column is a character

	text    string // value of a scalar; numbers and booleans as their shortest text
	raw     string // scalar as the file writes it
	quoted  bool
	items   []*node // of a list
	entries []entry // of a table
}

type entry struct{ key, value *node }

// kind is the type of a value, in a rule author's words.
type kind uint8

const (
	nothing kind = iota
	aText
	aNumber
	aBoolean
	aList
	aTable
)

var kindNames = [...]string{"empty", "text", "a number", "true or false", "a list", "a table of keys"}

// String returns a description of n for faults.
func (n *node) String() string {
	switch {
	case n.kind == aNumber || n.kind == aBoolean:
		return n.raw
	case n.quoted && n.kind == aText:
		return "text in quotes"
	case n.kind == aText:
		return strconv.Quote(n.text)
	}
	return kindNames[n.kind]
}

func (n *node) isScalar() bool { return n.kind == aText || n.kind == aNumber || n.kind == aBoolean }

// get returns the value of key in a table, or nil when there is none.
func (n *node) get(key string) *node {
	for _, e := range n.entries {
		if e.key.text == key {
			return e.value
		}
	}
	return nil
}

var (
	integers = regexp.MustCompile(`^[-+]?[0-9][0-9_]*$`)
	floats   = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	based    = regexp.MustCompile(`^0(x[0-9a-fA-F]+|o[0-7]+|b[01]+)$`)
)

// scalar sets n to the plain or quoted scalar s, by YAML 1.2's core schema with
// underscores in numbers. Whole numbers keep all their digits.
func (n *node) scalar(s string) {
	n.kind, n.text, n.raw = aText, s, s
	if n.quoted {
		return
	}
	switch s {
	case "", "~", "null", "Null", "NULL":
		n.kind, n.text = nothing, ""
		return
	case "true", "True", "TRUE", "false", "False", "FALSE":
		n.kind, n.text = aBoolean, strings.ToLower(s)
		return
	}
	switch {
	case integers.MatchString(s):
		n.kind, n.text = aNumber, shortest(strings.ReplaceAll(s, "_", ""))
	case based.MatchString(s):
		if v, err := strconv.ParseUint(s, 0, 64); err == nil {
			n.kind, n.text = aNumber, strconv.FormatUint(v, 10)
		}
	case floats.MatchString(s):
		if v, err := strconv.ParseFloat(s, 64); err == nil {
			n.kind, n.text = aNumber, strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
}

// shortest returns a whole number without plus and leading zeros.
func shortest(digits string) string {
	sign := ""
	if digits[0] == '-' {
		sign = "-"
	}
	digits = strings.TrimLeft(digits, "+-0")
	if digits == "" {
		return "0"
	}
	return sign + digits
}

// ambiguous reports whether n is a number with leading zeros, such as 007,
// which other YAML readers take for octal and people for text.
func (n *node) ambiguous() bool {
	digits := strings.TrimLeft(n.raw, "+-")
	return n.kind == aNumber && len(digits) > 1 && digits[0] == '0' && integers.MatchString(n.raw)
}
