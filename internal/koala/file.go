package koala

import (
	"fmt"
	"os"
	"time"
	"unicode/utf8"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/files"
	"github.com/weirhq/weir/rule"
)

// File is a rule file that was read without a fault. It must not be changed.
type File struct {
	// Set are the compiled Rules with Outcomes.
	Set      *rule.Set
	Rules    []rule.Rule
	Outcomes map[string]rule.Outcome

	// Lists are the dicts in the file's order, and Paths the absolute paths of
	// their files in the same order: when one changes, the rules are to be
	// read again.
	Lists []List
	Paths []string

	// Zone is the one of koala's natural day, Asia/Shanghai.
	Zone *time.Location

	// Warnings are what weir takes otherwise than koala did, in the order of
	// the file.
	Warnings fault.List

	// Comments are the comment lines directly above a rule, by its name,
	// without the #. RowComments are those above a result row, by the name of
	// its outcome.
	Comments    map[string]string
	RowComments map[string]string
}

// List is where a dict comes from.
type List struct {
	Name    string
	Path    string // as the rule file writes it
	Line    int    // in the rule file, from 1
	Comment string // the comment lines directly above, without the #
}

// Load reads the rule file at path, and its dict files, from disk. A relative
// path of a dict is taken from the rule file's directory; when nothing is
// there, from the directory above, because koala, started in its home, names
// conf/x.dat in conf/koala_rule.conf. The error is a [fault.List] when the file could
// be read but is not right.
func Load(path string) (*File, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("koala rule file: %w", err)
	}
	return ParseAt(path, src, os.ReadFile)
}

// ParseAt reads src as if it stood in the rule file at path: dict files are
// found as by [Load], and read is given the paths at which they are. Any error
// is a [fault.List].
func ParseAt(path string, src []byte, read func(path string) ([]byte, error)) (*File, error) {
	return parse(path, src, func(dict string) ([]byte, string, error) {
		found := nearby(path, dict)
		src, err := read(found)
		return src, found, err
	})
}

// Parse reads src as a rule file. Faults call it name, and dict files stand
// relative to it: read is given a dict's path as the rule file writes it. A
// nil read refuses dicts. Any error is a [fault.List].
func Parse(name string, src []byte, read func(path string) ([]byte, error)) (*File, error) {
	if read == nil {
		return parse(name, src, nil)
	}
	return parse(name, src, func(dict string) ([]byte, string, error) {
		src, err := read(dict)
		return src, files.Beside(name, dict), err
	})
}

// reader reads a dict file and says where it was found.
type reader func(path string) (src []byte, found string, err error)

func parse(name string, src []byte, read reader) (*File, error) {
	p := pass{
		name: name, read: read,
		file: &File{
			Zone: shanghai(time.LoadLocation), Comments: map[string]string{}, RowComments: map[string]string{}, Outcomes: map[string]rule.Outcome{},
		},
		lists: map[string]*rule.List{}, returns: map[int64]int{},
	}
	p.readFile(src)
	p.faults.Sort(name)
	if len(p.faults) > 0 {
		return nil, p.faults.Err()
	}
	p.warnings.Sort(name)
	p.file.Warnings = p.warnings
	return p.file, nil
}

// shanghai is the zone of koala's natural day. A machine without a time zone
// database has it too: since 1991 there was no summer time.
func shanghai(load func(name string) (*time.Location, error)) *time.Location {
	const name = "Asia/Shanghai"
	if zone, err := load(name); err == nil {
		return zone
	}
	return time.FixedZone(name, 8*60*60)
}

// pass is one run over a file. Its methods note faults and go on, so that one
// run finds them all.
type pass struct {
	name string
	read reader
	file *File

	here     entry  // the line that is being read
	rule     string // the rule that is being read, for its faults
	faults   fault.List
	warnings fault.List

	shown, shownFor string // see source

	lists   map[string]*rule.List // nil for a dict that is not right
	returns map[int64]int         // lines of the rules by return code
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
	if len(p.faults) == 0 {
		p.compile()
	}
}

// compile makes the set. What was read without a fault compiles; if not, that
// is said of the whole file.
func (p *pass) compile() {
	set, err := rule.New(p.file.Rules, p.file.Outcomes)
	p.file.Set = set
	if err != nil {
		p.here = entry{number: 1}
		p.fault(piece{}, "%v", err)
	}
}

// fault notes that something is wrong at s, in the line that is being read.
func (p *pass) fault(s piece, format string, args ...any) {
	if len(p.faults) < fault.Most {
		p.faults = append(p.faults, p.note(s, format, args...))
	}
}

// warn notes that weir takes what is at s otherwise than koala did.
func (p *pass) warn(s piece, format string, args ...any) {
	if len(p.warnings) < maxWarnings {
		p.warnings = append(p.warnings, p.note(s, format, args...))
	}
}

// note returns a fault at s, in the line that is being read.
func (p *pass) note(s piece, format string, args ...any) *fault.Fault {
	return &fault.Fault{
		Rule: p.rule, Problem: fmt.Sprintf(format, args...),
		Place: fault.Place{
			File: p.name, Line: p.here.number, Column: 1 + utf8.RuneCountInString(p.here.text[:s.at]), Source: p.source(),
		},
	}
}

// source is the line that is being read, as UTF-8. A byte that is no character
// is one, as for the column.
func (p *pass) source() string {
	if p.shown == "" || p.shownFor != p.here.text {
		p.shown, p.shownFor = p.here.text, p.here.text
		if !utf8.ValidString(p.here.text) {
			p.shown = string([]rune(p.here.text))
		}
	}
	return p.shown
}
