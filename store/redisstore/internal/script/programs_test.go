package script_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/store/redisstore/internal/script"
)

// TestPrograms holds the files in testdata/programs to what runs on the server.
// `go test -rewrite` writes them.
func TestPrograms(t *testing.T) {
	t.Parallel()
	const folder = "testdata/programs"
	rewrite := flag.Lookup("rewrite").Value.String() == "true" // datadriven's
	programs := script.Programs()
	for name, want := range programs {
		file := filepath.Join(folder, name+".lua")
		if rewrite {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s: differs from the program that runs; write it with -rewrite and read the difference", file)
		}
	}
	files, err := filepath.Glob(folder + "/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if _, ok := programs[name[:len(name)-len(".lua")]]; !ok {
			t.Errorf("%s: got a file of a program that does not exist", file)
		}
	}
}
