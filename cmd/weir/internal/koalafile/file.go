package koalafile

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
)

// File is a rule file without faults. It must not be changed.
type File struct {
	// Set is compiled from Rules and Outcomes.
	Set      *rule.Set
	Rules    []rule.Rule
	Outcomes map[string]rule.Outcome

	// Lists are the dicts in the order of the file. Paths are the absolute
	// paths of their files, in the same order. When one of these files changes,
	// the rules must be read again.
	Lists []List
	Paths []string

	// Zone is the zone of koala's natural day, Asia/Shanghai.
	Zone *time.Location

	// Warnings state what weir reads differently from koala, in the order of
	// the file.
	Warnings fault.List

	// Comments are the comment lines directly above a rule, without the #, by
	// the name of the rule. RowComments are those above a result row, by the
	// name of its outcome.
	Comments    map[string]string
	RowComments map[string]string
}

// List describes the source of a dict.
type List struct {
	Name    string
	Comment string // the comment lines directly above, without the #
}

// Parse reads src as the text of the rule file at path, and its dict files with
// read. It looks for a dict with a relative path in the rule file's directory, then
// in the directory above, because koala starts in its home and names conf/x.dat in
// conf/koala_rule.conf. Any error is a [fault.List].
func Parse(path string, src []byte, read func(path string) ([]byte, error)) (*File, error) {
	p := pass{
		name: path, read: read,
		file: &File{
			Zone: Zone(), Comments: map[string]string{}, RowComments: map[string]string{}, Outcomes: map[string]rule.Outcome{},
		},
		lists: map[string]rule.Test{}, returns: map[int64]int{},
	}
	p.readFile(src)
	p.faults.Sort(path)
	if len(p.faults) > 0 {
		return nil, p.faults.Err()
	}
	p.warnings.Sort(path)
	p.file.Warnings = p.warnings
	return p.file, nil
}

// Zone returns the zone of koala's natural day, Asia/Shanghai. It does not need
// time zone data: there has been no summer time since 1991.
func Zone() *time.Location { return zone(time.LoadLocation) }

func zone(load func(name string) (*time.Location, error)) *time.Location {
	const name = "Asia/Shanghai"
	if loaded, err := load(name); err == nil {
		return loaded
	}
	return time.FixedZone(name, 8*60*60)
}

// pass is one run over a file. Its methods record faults and continue, so that one run finds
// all of them.
type pass struct {
	name string
	read func(path string) ([]byte, error)
	file *File

	here     entry  // the current line
	rule     string // the name of the current rule, for its faults
	faults   fault.List
	warnings fault.List

	shown, shownFor string // see source

	lists   map[string]rule.Test // nil for a dict with a fault
	returns map[int64]int        // lines of the rules by return code
}

func (p *pass) readFile(src []byte) {
	sections := p.sections(src)
	for _, e := range sections[dicts] {
		p.here = e
		p.readDict(e.piece())
	}
	for _, e := range sections[results] {
		p.here = e
		p.readRow(e.piece())
	}
	p.defaultRows()
	for _, e := range sections[rules] {
		p.here = e
		p.readRule(e.piece())
		p.rule = ""
	}
	if len(p.faults) > 0 {
		return
	}
	var err error
	if p.file.Set, err = rule.New(p.file.Rules, p.file.Outcomes); err != nil { // should not happen
		p.here = entry{number: 1}
		p.fault(piece{}, "%v", err)
	}
}

// The maximum numbers of faults and of warnings that the reader records.
const (
	maxFaults   = 1000
	maxWarnings = 10_000
)

// fault records a fault at s, in the current line.
func (p *pass) fault(s piece, format string, args ...any) {
	if len(p.faults) < maxFaults {
		p.faults = append(p.faults, p.note(s, format, args...))
	}
}

// warn records that weir reads the text at s differently from koala.
func (p *pass) warn(s piece, format string, args ...any) {
	if len(p.warnings) < maxWarnings {
		p.warnings = append(p.warnings, p.note(s, format, args...))
	}
}

// note returns a fault at s, in the current line.
func (p *pass) note(s piece, format string, args ...any) *fault.Fault {
	return &fault.Fault{
		Rule: p.rule, Problem: fmt.Sprintf(format, args...),
		Place: fault.Place{
			File: p.name, Line: p.here.number, Column: 1 + utf8.RuneCountInString(p.here.text[:s.at]), Source: p.source(),
		},
	}
}

// source returns the current line as UTF-8. An invalid byte becomes one
// character, as in the column.
func (p *pass) source() string {
	if p.shown == "" || p.shownFor != p.here.text {
		p.shown, p.shownFor = p.here.text, p.here.text
		if !utf8.ValidString(p.here.text) {
			p.shown = string([]rune(p.here.text))
		}
	}
	return p.shown
}
