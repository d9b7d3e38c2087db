package weir_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Files of these packages depend on each other in one direction only, as
// packages do.
func TestFilesPointOneWay(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{".", "internal/plan", "internal/drive", "store"} {
		uses := fileArrows(t, dir)
		var visit func(file string, way []string)
		done := map[string]bool{}
		visit = func(file string, way []string) {
			if i := slices.Index(way, file); i >= 0 {
				t.Errorf("%s: files depend on each other in a circle: %s", dir, strings.Join(append(way[i:], file), " → "))
				return
			}
			if done[file] {
				return
			}
			for _, other := range slices.Sorted(maps.Keys(uses[file])) {
				visit(other, append(slices.Clone(way), file))
			}
			done[file] = true
		}
		for _, file := range slices.Sorted(maps.Keys(uses)) {
			visit(file, nil)
		}
	}
}

// fileArrows returns, for each file of a package, the other files whose
// declarations it uses. Imported packages stay unknown: only what the package
// declares itself matters here.
func fileArrows(t *testing.T, dir string) map[string]map[string]bool {
	t.Helper()
	set := token.NewFileSet()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	uses := map[string]map[string]bool{}
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(set, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files, uses[name] = append(files, f), map[string]bool{}
		}
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: nothing{}, Error: func(error) {}}
	pkg, _ := config.Check(dir, set, files, &info) // errors are about imports
	at := func(p token.Pos) string { return filepath.Base(set.Position(p).Filename) }
	for ident, object := range info.Uses {
		if from, to := at(ident.Pos()), at(object.Pos()); object.Pkg() == pkg && from != to {
			uses[from][to] = true
		}
	}
	return uses
}

// nothing imports empty packages.
type nothing struct{}

func (nothing) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}
