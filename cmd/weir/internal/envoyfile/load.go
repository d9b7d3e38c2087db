package envoyfile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirhq/weir/cmd/weir/internal/files"
)

// Load reads the files of a directory whose names end in .yaml, in the order of
// their names. The error is a [fault.List] if the files could be read.
func Load(dir string, o Options) (*Config, error) {
	sources, err := Read(dir)
	if err != nil {
		return nil, err
	}
	return New(sources, o)
}

// Read reads the files that [Load] reads. There must be at least one.
func Read(dir string) (sources []Source, err error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory: want the one that holds it", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".yaml") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		text, err := files.Rules(path)
		if err != nil {
			return nil, err
		}
		sources = append(sources, Source{path, text})
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("%s: holds no file whose name ends in .yaml", dir)
	}
	slices.SortFunc(sources, func(a, b Source) int { return strings.Compare(a.Name, b.Name) })
	return sources, nil
}
