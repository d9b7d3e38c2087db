// Package findings has what `weir check` finds in rules files: errors and warnings with their places, as its JSON
// has them.
package findings

import (
	"fmt"
	"strings"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rulefile"
)

// Finding is an error or a warning.
type Finding struct {
	Name    string `json:"name,omitempty"` // of a warning
	Rule    string `json:"rule,omitempty"`
	Problem string `json:"problem"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Source  string `json:"source,omitempty"` // the line, unless it is long
}

// maxSource is the maximum size of a line in a finding, in bytes. A thousand findings can be about one line, which can
// be the whole file.
const maxSource = 1 << 10

// Of returns the finding about f. name is that of a warning, or empty.
func Of(name string, f *fault.Fault) Finding {
	p := f.Place
	problem := strings.TrimPrefix(f.Summary(), p.String()+": ")
	problem = strings.TrimPrefix(problem, fmt.Sprintf("rule %q: ", f.Rule))
	source := p.Source
	if len(source) > maxSource {
		source = ""
	}
	return Finding{name, f.Rule, problem, p.File, p.Line, p.Column, source}
}

// Errors returns a finding for each fault in err, or for err itself if it has none.
func Errors(err error) []Finding {
	list := []Finding{} // not null in the JSON
	for _, f := range fault.Of(err) {
		list = append(list, Of("", f))
	}
	if len(list) == 0 {
		list = append(list, Finding{Problem: err.Error()})
	}
	return list
}

// Warnings returns a finding for each of warnings.
func Warnings(warnings []rulefile.Warning) []Finding {
	list := []Finding{}
	for _, w := range warnings {
		list = append(list, Of(w.Name, w.Fault))
	}
	return list
}
