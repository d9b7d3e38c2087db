// Command surface counts what each package of the repository exports: types,
// functions, methods, constants, variables, struct fields and interface methods in
// code that is written by hand. It leaves out tests, generated files, programs,
// internal packages and testdata.
//
//	go run ./scripts/surface              # a table of packages and modules
//	go run ./scripts/surface -names rule  # the identifiers of one package
//	go run ./scripts/surface -most 731    # fails if there are more in all
//
// The sum leaves out the modules below contrib and cmd/weir, which have other
// users.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	root := flag.String("root", ".", "the folder of the repository")
	names := flag.String("names", "", "list the identifiers of the package in this folder")
	most := flag.Int("most", 0, "fail if the sum is greater; 0: no bound")
	flag.Parse()
	packages, err := read(*root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "surface:", err)
		os.Exit(2)
	}
	if *names != "" {
		for _, name := range slices.Sorted(slices.Values(packages[path.Clean(*names)])) {
			fmt.Println(name)
		}
		return
	}
	sum := write(packages, modules(*root))
	if *most > 0 && sum > *most {
		fmt.Fprintf(os.Stderr, "surface: %d exported identifiers, want at most %d\n", sum, *most)
		os.Exit(1)
	}
}

// read returns the exported identifiers of each package, by its folder.
func read(root string) (map[string][]string, error) {
	packages := map[string][]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if file != root && (name[0] == '.' || name[0] == '_') || name == "internal" || name == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if parsed.Name.Name == "main" || ast.IsGenerated(parsed) {
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		packages[folder] = append(packages[folder], exported(parsed)...)
		return nil
	})
	return packages, err
}

// exported returns what a file exports.
func exported(f *ast.File) (names []string) {
	add := func(prefix string, idents ...*ast.Ident) {
		for _, id := range idents {
			if id.IsExported() {
				names = append(names, prefix+id.Name)
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add("", d.Name)
			} else if of := receiver(d.Recv.List[0].Type); ast.IsExported(of) {
				add(of+".", d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					add("", s.Names...)
				case *ast.TypeSpec:
					if add("", s.Name); s.Name.IsExported() {
						members(s.Name.Name+".", s.Type, add)
					}
				}
			}
		}
	}
	return names
}

// members adds the exported fields or methods of a type.
func members(prefix string, t ast.Expr, add func(string, ...*ast.Ident)) {
	var list *ast.FieldList
	switch t := t.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return
	}
	for _, field := range list.List {
		if add(prefix, field.Names...); len(field.Names) == 0 {
			add(prefix, ast.NewIdent(receiver(field.Type))) // embedded
		}
	}
}

// receiver returns the name of the type of a receiver or an embedded field.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.SelectorExpr:
		return t.Sel.Name
	case *ast.Ident:
		return t.Name
	}
	return "_"
}

// modules returns the folders below root that are modules, the longest names first.
func modules(root string) (folders []string) {
	_ = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "go.mod" {
			if folder, err := filepath.Rel(root, filepath.Dir(file)); err == nil {
				folders = append(folders, filepath.ToSlash(folder))
			}
		}
		return nil
	})
	slices.SortFunc(folders, func(a, b string) int { return len(b) - len(a) })
	return folders
}

// write prints a line for each package and each module, and returns the sum of those
// that count.
func write(packages map[string][]string, modules []string) (sum int) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	sums := map[string]int{}
	for _, folder := range slices.Sorted(maps.Keys(packages)) {
		n, in := len(packages[folder]), "."
		for _, m := range modules {
			if m == "." || folder == m || strings.HasPrefix(folder, m+"/") {
				in = m
				break
			}
		}
		sums[in] += n
		if n > 0 {
			fmt.Fprintf(w, "%s\t%d\n", folder, n)
		}
	}
	fmt.Fprintf(w, "\nmodule\t\n")
	for _, m := range slices.Sorted(maps.Keys(sums)) {
		note := ""
		if m == "cmd/weir" || m == "benchmarks" || strings.HasPrefix(m, "benchmarks/") || strings.HasPrefix(m, "contrib/") || strings.HasPrefix(m, "deploy/") {
			note = "not counted"
		} else {
			sum += sums[m]
		}
		if sums[m] > 0 {
			fmt.Fprintf(w, "%s\t%d\t%s\n", m, sums[m], note)
		}
	}
	fmt.Fprintf(w, "sum\t%d\n", sum)
	_ = w.Flush()
	return sum
}
