package server

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/envoyfile"
	"github.com/weirhq/weir/cmd/weir/internal/files"
	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/rulefile"
)

// rulesAt is the location of the rules of one namespace: a rules file, one of
// koala's, or a directory of envoyproxy/ratelimit's. Without a path it is the demo, the text
// from the standard input, or an xDS server.
type rulesAt struct {
	path  string
	stdin []byte // nil: not from there
	koala bool
	envoy *envoyRules // nil: the rules are not those of envoyproxy/ratelimit
	kept  bool        // counters outlive the process: in a store or a data directory
	nodes int64       // the number of instances, if it is known
}

// rulesOf returns the location of the rules that cfg names.
func rulesOf(cfg config.Config) rulesAt {
	if cfg.Koala != "" {
		return rulesAt{path: cfg.Koala, koala: true}
	}
	if e := &cfg.Envoy; e.Replaces() {
		return rulesAt{path: e.Dir, envoy: &envoyRules{options: envoyfile.Options{MergeDomains: e.MergeDomains, SpareDenied: e.Together, CalendarMonths: e.CalendarMonths}}}
	}
	at := rulesAt{path: cfg.Rules, kept: cfg.Store != "" || cfg.Data != "", nodes: int64(cfg.Nodes)}
	if cfg.Rules == "-" {
		at.path, at.stdin = "", append([]byte{}, cfg.Stdin...)
	}
	return at
}

// pushed reports whether an xDS server sends the rules.
func (r rulesAt) pushed() bool { return r.envoy != nil && r.path == "" }

// name returns the name of the file in faults.
func (r rulesAt) name() string {
	switch {
	case r.pushed():
		return "xDS"
	case r.path != "":
		return r.path
	case r.stdin != nil:
		return "stdin"
	}
	return "demo"
}

// loaded is the result of reading the rules.
type loaded struct {
	set      *rule.Set
	lists    []string // paths of the list files
	hash     string   // hash of the file and the lists; set even when they have a fault
	warnings fault.List
	envoy    *envoyfile.Config // of a directory of envoyproxy/ratelimit's
}

// read reads the rules. It reads each file once, so that the hash is that of
// the parsed content.
func (r rulesAt) read() (loaded, error) {
	if r.envoy != nil {
		return r.readEnvoy(true)
	}
	src := []byte(demo)
	if r.stdin != nil {
		src = r.stdin
	}
	if r.path != "" {
		var err error
		if src, err = files.Rules(r.path); err != nil {
			return loaded{hash: err.Error()}, err
		}
	}
	return r.parse(src)
}

// hash returns what read would return as hash if the rules file names the lists that
// it named before. It reads the files, and does not parse them.
func (r rulesAt) hash(lists []string) string {
	if r.envoy != nil {
		l, _ := r.readEnvoy(false) // the hash has the error
		return l.hash
	}
	src, err := files.Rules(r.path)
	if err != nil {
		return err.Error()
	}
	sum := files.NewSum(src)
	for _, list := range lists {
		sum.Read(list) //nolint:errcheck // the hash has the error
	}
	return sum.Text()
}

// parse reads src as the content of the rules file, and its lists.
func (r rulesAt) parse(src []byte) (l loaded, err error) {
	sum := files.NewSum(src)
	read := func(list string) ([]byte, error) {
		l.lists = append(l.lists, list)
		return sum.Read(list)
	}
	if r.koala {
		file, faults := koalafile.Parse(r.path, src, read)
		if err = faults; err == nil {
			l.set, l.warnings = file.Set, file.Warnings
		}
	} else if err = koalafile.NotRules(r.name(), src); err == nil {
		file, faults := rulefile.Parse(r.name(), src, func(list string) ([]byte, error) { return read(files.RelativeTo(r.path, list)) })
		if err = faults; err == nil {
			l.set, l.lists = file.Set, file.Lists
			l.warnings = r.lint(file)
		}
	}
	l.hash = sum.Text()
	return l, err
}

// mostLinted is the maximum number of rules in a file whose warnings are logged. Finding those of so many usual rules
// takes a few milliseconds.
const mostLinted = 1000

// lint returns the warnings about a rules file for the log.
func (r rulesAt) lint(file *rulefile.File) (list fault.List) {
	if file.Set.Len() > mostLinted {
		return nil
	}
	for _, w := range r.findings(file) {
		f := *w.Fault
		f.Problem += " (" + w.Name + ")"
		list = append(list, &f)
	}
	return list
}

// findings returns the warnings about a rules file that concern this service.
func (r rulesAt) findings(file *rulefile.File) []rulefile.Warning {
	return slices.DeleteFunc(file.Warnings(r.nodes), func(w rulefile.Warning) bool { return r.kept && w.Name == "restart-forgets" })
}

// place is the location of the rules of all namespaces: one file, or a directory with a
// file for each.
type place struct {
	dir  string  // empty: one file
	file rulesAt // of the namespace default; with dir, of every namespace but for the path
}

// placeOf returns the place that cfg names.
func placeOf(cfg config.Config) (place, error) {
	if cfg.Koala != "" || cfg.Rules == "" || cfg.Rules == "-" {
		return place{file: rulesOf(cfg)}, nil
	}
	info, err := files.Stat(cfg.Rules)
	switch {
	case errors.Is(err, files.ErrSlow):
		return place{}, err
	case err == nil && info.IsDir():
		return place{dir: cfg.Rules, file: rulesOf(cfg)}, nil
	}
	return place{file: rulesOf(cfg)}, nil
}

// path returns the file or the directory, or an empty string for the demo.
func (p place) path() string {
	if p.dir != "" {
		return p.dir
	}
	return p.file.path
}

// whole returns the reach of an authenticator for calls that concern all namespaces. If there
// is only the namespace default, its holders may make them.
func (p place) whole() access.Reach {
	if p.dir == "" {
		return access.ReachDefault
	}
	return access.ReachAll
}

// attempt is what reading the rules of one namespace has given.
type attempt struct {
	name string
	at   rulesAt
	loaded
	err error
}

// list returns the files of all namespaces. bad are faults of files that cannot be
// namespaces.
func (p place) list() (all []attempt, bad fault.List, err error) {
	if p.dir == "" {
		return []attempt{{name: namespace.Default, at: p.file}}, nil, nil
	}
	found, bad, err := namespace.Files(p.dir)
	if err != nil {
		return nil, nil, err
	}
	if len(found) == 0 {
		return nil, bad, errors.Join(fmt.Errorf("%s: holds no rules file: want one NAME.yaml for each namespace, such as default.yaml", p.dir), bad.Err())
	}
	for _, f := range found {
		at := p.file
		at.path = f.Path
		all = append(all, attempt{name: f.Name, at: at})
	}
	return all, bad, nil
}

// read reads the rules of all namespaces before they are served. The error is that of
// a location without any readable rules.
func (p place) read() (all []attempt, bad fault.List, err error) {
	all, bad, err = p.list()
	if err != nil {
		return nil, nil, err
	}
	var faults []error
	for i := range all {
		a := &all[i]
		if a.loaded, a.err = a.at.read(); a.err != nil {
			faults = append(faults, a.err)
		}
	}
	if len(faults) == len(all) && !p.file.pushed() {
		return nil, nil, joined(faults)
	}
	return all, bad, nil
}

// joined returns all faults as one list, or all errors.
func joined(errs []error) error {
	var faults fault.List
	for _, err := range errs {
		of := fault.Of(err)
		if of == nil {
			return errors.Join(errs...)
		}
		faults = append(faults, of...)
	}
	return faults.Err()
}
