// Package needtest finds the programs that tests run against: nginx, caddy, curl.
// Only tests import it.
package needtest

import (
	"os"
	"os/exec"
	"testing"
)

// Program returns the path of a program. If there is none, the test fails when
// WEIR_REQUIRE_PROGRAMS=1, which make test sets, and is skipped otherwise.
func Program(t testing.TB, name string) string {
	t.Helper()
	// Servers are often in /usr/sbin, which PATH may lack.
	for _, path := range []string{name, "/usr/sbin/" + name, "/usr/local/sbin/" + name} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	missing(t, name)
	return ""
}

// File makes sure that a file of a library is there, as [Program] does for programs.
func File(t testing.TB, path, library string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		missing(t, library)
	}
}

func missing(t testing.TB, name string) {
	t.Helper()
	const fix = "%s is not installed: scripts/install-programs installs what the tests run"
	if os.Getenv("WEIR_REQUIRE_PROGRAMS") == "1" {
		t.Fatalf(fix, name)
	}
	t.Skipf(fix, name)
}
