package rulefile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
)

var listKeys = []string{"file", "values"}

// maxListFaults is how many faults of one list file are reported, because a file in another
// format has one in every line.
const maxListFaults = 10

// readLists reads the table lists: names and their values.
func (p *pass) readLists(n *node) {
	if n == nil || n.kind == nothing {
		return
	}
	if n.kind != aTable {
		p.fault(n, "lists is %s, want names with their values, such as staff: {values: [ann, bob]}", n)
		return
	}
	for _, e := range p.unique(n) {
		name := e.key.text
		p.lists[name] = nil
		if e.value.kind != aTable {
			p.fault(e.value, "list %q is %s, want {file: PATH} or {values: [...]}", name, e.value)
			continue
		}
		before := len(p.faults)
		f := p.fields(e.value, listKeys)
		file, values := f["file"], f["values"]
		switch {
		case before != len(p.faults):
		case file != nil && values != nil:
			p.fault(values, "list %q has file and values: want one of them", name)
		case file != nil:
			p.listFile(name, file)
		case values != nil:
			p.listValues(name, values)
		default:
			p.fault(e.value, "list %q has no values: want {file: PATH} or {values: [...]}", name)
		}
	}
}

// listValues reads a list whose values are in the rules file.
func (p *pass) listValues(name string, n *node) {
	if n.kind == aList && len(n.items) == 0 {
		n.kind = nothing
	}
	var values []string
	if n.kind != nothing {
		values = p.texts(n)
	}
	list, err := rule.In(name, values)
	if err == nil {
		p.lists[name] = list
		return
	}
	found := len(p.faults)
	for _, item := range n.items {
		if why := wrongEntry(name, item.text); why != "" && item.text != "" {
			p.fault(item, "%s", why)
		}
	}
	if len(p.faults) == found {
		p.fault(n, "%v", err)
	}
}

// wrongEntry returns why value cannot be on a list, or "" when it can.
func wrongEntry(name, value string) string {
	_, err := rule.In(name, []string{value})
	if err == nil {
		return ""
	}
	return strings.Replace(err.Error(), "entry 1: ", "", 1)
}

// listFile reads a list from a separate file, one value a line.
func (p *pass) listFile(name string, n *node) {
	path := p.text(n)
	if path == "" {
		return
	}
	if p.read == nil {
		p.fault(n, "list %q: list files cannot be read here: want {values: [...]}", name)
		return
	}
	src, err := p.read(path)
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err
		}
		p.fault(n, "list %q: file %q: %v; its path is relative to the rules file", name, path, err)
		return
	}
	shown := relativeTo(p.name, path)
	absolute, err := filepath.Abs(shown)
	if err != nil {
		absolute = shown
	}
	p.paths = append(p.paths, absolute)

	lines := bytes.Split(bytes.TrimPrefix(src, []byte("\ufeff")), []byte("\n"))
	values := make([]string, 0, len(lines))
	for i, line := range lines {
		v := listLine(line)
		if v == "" {
			continue
		}
		values = append(values, v)
		if what := hostBits(v); what != "" && p.blocks[n] == "" {
			p.blocks[n] = fmt.Sprintf("%s:%d: %s", path, i+1, what)
		}
	}
	if list, err := rule.In(name, values); err == nil && utf8.Valid(src) {
		p.lists[name] = list
		return
	}
	p.listFaults(name, shown, lines)
}

// listFaults records the faults of a list file, line by line.
func (p *pass) listFaults(name, shown string, lines [][]byte) {
	found := 0
	for i, line := range lines {
		value, why := listLine(line), ""
		switch {
		case !utf8.Valid(line):
			why = fmt.Sprintf("list %q: the line is not UTF-8 text, want one value, address or CIDR a line", name)
		case value != "":
			why = wrongEntry(name, value)
		}
		if why == "" {
			continue
		}
		if found++; found > maxListFaults {
			continue
		}
		source := strings.ToValidUTF8(string(bytes.TrimRight(line, "\r")), "\ufffd")
		column := 1 + utf8.RuneCountInString(source[:len(source)-len(strings.TrimLeft(source, " \t"))])
		p.faults = append(p.faults, &fault.Fault{
			Problem: why, Place: fault.Place{File: shown, Line: i + 1, Column: column, Source: source},
		})
	}
	if more := found - maxListFaults; more > 0 {
		p.faults[len(p.faults)-1].Problem += fmt.Sprintf(" (and %d more lines like it)", more)
	}
}

// listLine returns the value in a line of a list file: without blanks around
// it, and without a comment, which starts with a # at the start or after a
// blank.
func listLine(line []byte) string {
	for i, c := range line {
		if c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			line = line[:i]
			break
		}
	}
	return string(bytes.TrimSpace(line))
}
