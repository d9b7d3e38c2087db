//go:build linux || darwin

package datadir_test

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/datadir"
)

// asUser makes TestAsUser open this directory, in a separate process.
const asUser = "WEIR_TEST_OPEN"

// nobody is a user that is not root, for whom modes of files count.
const nobody = 65534

// TestAsUser is what openAs runs as another user. It prints what it finds.
func TestAsUser(t *testing.T) {
	dir := os.Getenv(asUser)
	if dir == "" {
		t.Log("only in the process that openAs starts")
		return
	}
	failing := make(chan error, 1)
	s, err := datadir.Open(dir, datadir.WithInterval(time.Millisecond), datadir.WithEvents(func(e datadir.Event) {
		if e.Kind == datadir.Failing {
			failing <- e.Err
		}
	}))
	if err != nil {
		fmt.Println("refused:", err)
		return
	}
	err = <-failing
	take(t, s, 1)
	fmt.Printf("used %d, failing %v: %v\n", usedOf(t, s, 0), s.Stats().Failing, err)
	_ = s.Close() // with the same error
}

// openAs opens dir in a process of a user that is not root, and returns what that says.
func openAs(t *testing.T, dir string) string {
	t.Helper()
	program := filepath.Join(filepath.Dir(dir), "program")
	copyFile(t, os.Args[0], program)
	cmd := exec.Command(program, "-test.run", "^TestAsUser$")
	cmd.Dir, cmd.Env = "/", append(os.Environ(), asUser+"="+dir)
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// copyFile copies a program. No other goroutine forks meanwhile, because its child would have
// the copy open for writing, and such a program cannot be run.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// readable returns a directory with one hit of a key that a user who is not root may
// only read.
func readable(t *testing.T) (dir string) {
	t.Helper()
	dir = filled(t, 1, 1)
	modes(t, dir, 0o555, 0o444)
	t.Cleanup(func() { modes(t, dir, 0o755, 0o644) })
	for above := filepath.Dir(dir); above != os.TempDir() && above != "/"; above = filepath.Dir(above) {
		if err := os.Chmod(above, 0o755); err != nil {
			break
		}
	}
	return dir
}

func modes(t *testing.T, dir string, folder, file fs.FileMode) {
	t.Helper()
	if err := os.Chmod(dir, 0o755); err != nil { // it may have a mode that only root can read
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.Chmod(filepath.Join(dir, e.Name()), file); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, folder); err != nil {
		t.Fatal(err)
	}
}

// A directory that may only be read is loaded, counting goes on in memory, and its files
// stay as they are.
func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	for _, locked := range []bool{true, false} {
		dir := readable(t)
		if !locked { // such as a backup
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
				t.Fatal(err)
			}
			modes(t, dir, 0o555, 0o444)
		}
		before := contents(t, dir)
		if got := openAs(t, dir); !strings.Contains(got, "used 2, failing true: ") || !strings.Contains(got, "permission denied") {
			t.Errorf("with a lock file %v: got %s", locked, got)
		}
		if after := contents(t, dir); after != before {
			t.Errorf("with a lock file %v: the files have changed", locked)
		}
	}
}

// A directory that may not be read is refused by name.
func TestUnreadableDirectory(t *testing.T) {
	t.Parallel()
	dir := readable(t)
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	if got := openAs(t, dir); !strings.Contains(got, "refused: data directory: ") || !strings.Contains(got, dir) || !strings.Contains(got, "permission denied") {
		t.Errorf("got %s", got)
	}
}

// contents returns the files of dir as one text.
func contents(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s\n%s\n", e.Name(), data)
	}
	return all.String()
}
