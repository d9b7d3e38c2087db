package script_test

import (
	"crypto/sha1"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/store/redisstore/internal/script"
)

// dump names a folder that TestPrograms writes the programs to, for luacheck and for
// readers.
var dump = flag.String("dump", "", "write the assembled programs to this `folder`")

// TestPrograms compares the hashes of the assembled programs with the committed list, so
// that no change of a program goes unnoticed: each server that runs weir has to load it.
// `go test -rewrite` writes the list, and `go test -dump DIR` the programs.
func TestPrograms(t *testing.T) {
	t.Parallel()
	const file = "testdata/programs.sha1"
	programs := script.Programs()
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		fmt.Fprintf(&list, "%x  %s.lua\n", sha1.Sum([]byte(programs[name])), name)
		if *dump != "" {
			if err := os.WriteFile(filepath.Join(*dump, name+".lua"), []byte(programs[name]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if flag.Lookup("rewrite").Value.String() == "true" { // datatest's
		if err := os.WriteFile(file, []byte(list.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if list.String() != string(want) {
		t.Errorf("the programs differ from %s; write it with -rewrite if they should:\ngot\n%swant\n%s", file, list.String(), want)
	}
}
