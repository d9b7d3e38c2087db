package namespace

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/files"
	"github.com/weirhq/weir/fault"
)

// File is the rules file of a namespace.
type File struct{ Name, Path string }

// suffix ends the names of rules files, and tests those of test files, which can be
// next to them.
const (
	suffix = ".yaml"
	tests  = "_test" + suffix
)

// Files returns the rules files in a directory, sorted by namespace: each NAME.yaml
// is the namespace NAME. It skips what starts with a dot, files for weir test
// (NAME_test.yaml), and files of other kinds, such as lists. The faults are about
// files that look like rules files and cannot be namespaces. The error is that of
// the directory.
func Files(dir string) (found []File, faults fault.List, err error) {
	entries, err := files.Dir(dir)
	if err != nil {
		return nil, nil, err
	}
	refuse := func(entry, problem string, args ...any) {
		f := fault.Newf("", problem, args...)
		f.Place = fault.Place{File: filepath.Join(dir, entry), Line: 1, Column: 1}
		faults = append(faults, f)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry, ".") || strings.HasSuffix(entry, tests) {
			continue
		}
		if strings.HasSuffix(entry, ".yml") {
			refuse(entry, "not served: want the name to end in %s", suffix)
			continue
		}
		name, ok := strings.CutSuffix(entry, suffix)
		if !ok {
			continue
		}
		if err := access.CheckName(name); err != nil {
			refuse(entry, "not served: not the name of a namespace: %v", err)
			continue
		}
		found = append(found, File{name, filepath.Join(dir, entry)})
	}
	slices.SortFunc(found, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return found, faults, nil
}

// In returns the rules file of the namespace called name in a directory. An empty
// name stands for the one called Default.
func In(dir, name string) (string, error) {
	name = cmp.Or(name, Default)
	if err := access.CheckName(name); err != nil {
		return "", fault.Newf("namespace", "%v", err)
	}
	return filepath.Join(dir, name+suffix), nil
}
