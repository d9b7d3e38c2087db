package xtime_test

import (
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const (
	weirPath  = "github.com/weirhq/weir/compat/rate"
	xtimePath = "golang.org/x/time/rate"
)

// TestAPI compares what the two packages export: names, types, signatures, constants and
// fields.
func TestAPI(t *testing.T) {
	t.Parallel()
	list, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", weirPath, xtimePath).Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(list)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	exported := func(path string) map[string]string {
		pkg, err := compiled.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		plain := func(p *types.Package) string {
			if p == pkg {
				return ""
			}
			return p.Path()
		}
		found := map[string]string{}
		add := func(name string, o types.Object) {
			if !o.Exported() {
				return
			}
			found[name] = plainType(o.Type(), plain)
			if c, ok := o.(*types.Const); ok {
				found[name] += " = " + c.Val().ExactString()
			}
		}
		for _, name := range pkg.Scope().Names() {
			o := pkg.Scope().Lookup(name)
			add(name, o)
			named, ok := o.Type().(*types.Named)
			if _, isType := o.(*types.TypeName); !ok || !isType {
				continue
			}
			for _, methods := range []types.Type{named, types.NewPointer(named)} {
				set := types.NewMethodSet(methods)
				for m := range set.Methods() {
					add(types.TypeString(methods, plain)+"."+m.Obj().Name(), m.Obj())
				}
			}
			if s, ok := named.Underlying().(*types.Struct); ok {
				for f := range s.Fields() {
					add(name+"."+f.Name(), f)
				}
			} else {
				found[name] += " " + named.Underlying().String()
			}
		}
		return found
	}
	got, want := exported(weirPath), exported(xtimePath)
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: got %q, want %q", name, got[name], text)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is not in x/time/rate", name)
		}
	}
	if len(want) < 30 {
		t.Errorf("got %d names in x/time/rate, want all", len(want))
	}
}

// plainType returns a type without the names of parameters.
func plainType(of types.Type, q types.Qualifier) string {
	s, ok := of.(*types.Signature)
	if !ok {
		return types.TypeString(of, q)
	}
	unnamed := func(vars *types.Tuple) *types.Tuple {
		var list []*types.Var
		for v := range vars.Variables() {
			list = append(list, types.NewVar(token.NoPos, nil, "", v.Type()))
		}
		return types.NewTuple(list...)
	}
	return types.TypeString(types.NewSignatureType(nil, nil, nil, unnamed(s.Params()), unnamed(s.Results()), s.Variadic()), q)
}
