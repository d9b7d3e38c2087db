// Package pgtest runs real PostgreSQL servers for tests. They listen on free ports of the
// loopback, keep their files in a directory of the test and end with the test.
//
// Without the programs of PostgreSQL, tests skip, or fail when WEIR_REQUIRE_PROGRAMS=1.
// WEIR_POSTGRES_BIN names the directory that has initdb, postgres and psql; by default it is
// the newest one of Debian's packages, or that of the initdb in PATH. The servers do not run
// as root: a test of root's runs them as the user postgres or nobody.
package pgtest

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// patience is how long a server may take to get ready, on a machine that is busy with other
// tests.
const patience = 60 * time.Second

// programs returns the directory of the programs.
func programs(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("WEIR_POSTGRES_BIN"); dir != "" {
		return dir
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) > 0 {
		version := func(path string) int {
			n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
			return n
		}
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(version(a), version(b)) }))
	}
	path, err := exec.LookPath("initdb")
	switch {
	case err == nil:
		return filepath.Dir(path)
	case os.Getenv("WEIR_REQUIRE_PROGRAMS") == "1":
		t.Fatal("install PostgreSQL, or name the directory of its programs in WEIR_POSTGRES_BIN")
	default:
		t.Skip("install PostgreSQL to run this test")
	}
	return ""
}

// Eventually calls ok until it returns true. It fails the test when that takes more than a
// minute; what names the condition.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; !ok(); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not so after %v", what, patience)
		}
		time.Sleep(pause)
	}
}
