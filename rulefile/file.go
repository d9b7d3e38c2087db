package rulefile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
)

// File is the content of a rules file that has no faults. The caller must not
// change it.
type File struct {
	// Set is the compiled rules.
	Set *rule.Set

	// Lists holds the absolute paths of the list files that were read, in the
	// order of the rules file. When one of them changes, read the rules file again.
	Lists []string

	// Zone is the time zone that the file sets, UTC when it sets none.
	Zone *time.Location

	warnings func(instances int64) []Warning
}

// Load reads the rules file at path, and the list files that it names, from disk.
// If the rules file can be read, any error is that of [Parse].
func Load(path string) (*File, error) {
	src, err := readFile(path, maxSource)
	if err != nil {
		return nil, fmt.Errorf("rules file: %w", err)
	}
	return Parse(path, src, func(list string) ([]byte, error) {
		return readFile(relativeTo(path, list), maxList)
	})
}

// maxList is the maximum size of a list file, in bytes.
const maxList = 64 << 20

// readFile returns the content of the file at path, at most most bytes.
func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s: larger than %d MiB", path, most>>20)
	}
	return b, err
}

// relativeTo resolves path, as it is written in the file called name: a relative path starts in
// that file's directory.
func relativeTo(name, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(name), path)
}

// Parse reads src as a rules file. name is the path of the file, for faults and as the base of
// the paths of list files. Parse calls read with
// the path of each list file as it is written in src. If read is nil, naming a
// list file is a fault.
//
// Any error is a [fault.List] in the order of the file, with the faults in list
// files last. Parse stops collecting faults after a thousand.
func Parse(name string, src []byte, read func(path string) ([]byte, error)) (*File, error) {
	p := pass{name: name, smallest: "rules:, and under it " + smallest, read: read, zone: time.UTC, lists: map[string]rule.Test{}, blocks: map[*node]string{}}
	root := p.source(src)
	var file *File
	if root != nil {
		file = p.file(root)
	}
	if len(p.faults) > 0 {
		p.faults.Sort(name)
		return nil, p.faults.Err()
	}
	return file, nil
}

// spot is a place in a line, with its position in bytes.
type spot struct{ line, column, at int }

// pass is one run over a file. If a value is wrong, its methods record a fault and continue
// with a harmless value, so that one run finds all faults.
type pass struct {
	name     string
	smallest string // the smallest file of this kind, as an example in faults
	read     func(path string) ([]byte, error)

	lines  []string // of the source
	starts []int    // see split
	last   spot     // where lacksQuotes has looked last: a line can have many thousand places
	cost   cost     // of parsing it
	faults fault.List
	rule   string // the rule that is being read, for its faults

	zone     *time.Location
	lists    map[string]rule.Test
	blocks   map[*node]string // by the path of a list file: the first block in it with host bits
	paths    []string         // of list files
	outcomes map[string]rule.Outcome

	listNames, outcomeNames []string // sorted, for faults about others

	ips []string // sorted names of the attributes that are IP addresses

	patterns int // the size of those that were read
}

var fileKeys = []string{"rules", "timezone", "lists", "outcomes", "unmatched", "addresses", "ignore"}

// file reads the whole document.
func (p *pass) file(n *node) *File {
	if n.kind == aList {
		p.fault(n, "the file is a list: want rules: in a line above it")
		return nil
	}
	if cases := n.get("cases"); cases != nil {
		p.fault(n, "the file is a test file, want a rules file: weir test runs test files")
		return nil
	}
	f := p.fields(n, fileKeys)
	if f == nil {
		return nil
	}
	if z := f["timezone"]; z != nil {
		p.zone = p.timezone(z)
	}
	p.readLists(f["lists"])
	p.listNames = sorted(p.lists)
	p.readOutcomes(f["outcomes"])
	p.outcomeNames = append([]string{rule.Allow, rule.Deny}, sorted(p.outcomes)...)
	unmatched := p.outcome(f["unmatched"])
	p.ips = p.asAddresses(f["addresses"])
	p.ignore(f["ignore"])

	list := f["rules"]
	if list == nil {
		p.fault(n, "there are no rules: want a list under rules:, such as %s", smallest)
		return nil
	}
	if list.kind != aList {
		p.fault(list, "rules is %s, want a list, such as %s", list, smallest)
		return nil
	}
	rules := make([]rule.Rule, p.size(list))
	for i := range rules {
		item := p.next(list, i)
		if item == nil {
			return nil
		}
		if rules[i] = p.readRule(item); len(p.faults) >= maxFaults {
			return nil
		}
	}
	set, err := rule.New(rules, p.outcomes)
	if err != nil {
		p.compiled(err, n)
		return nil
	}
	if set, err = set.WithUnmatched(unmatched); err != nil {
		return nil // p.outcome has noted the fault
	}
	if set, err = set.WithAddresses(p.ips...); err != nil {
		p.compiled(err, n)
		return nil
	}
	return &File{
		Set: set, Lists: p.paths, Zone: p.zone,
		warnings: func(instances int64) []Warning { return p.lint(f, rules, instances) },
	}
}

// smallest is the example of a rule in faults.
const smallest = `"- {name: posts, per: [user], limit: 5, window: 1h}"`
