package window_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A program that links time/tzdata computes Berlin's 25-hour day on a machine
// without a time zone database. Here it runs with an empty root directory.
func TestCalendarWithoutTzdata(t *testing.T) {
	t.Parallel()
	room := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(room, "notzdata"), "./testdata/notzdata")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command("/notzdata")
	run.Dir, run.Env = "/", []string{}
	run.SysProcAttr = &syscall.SysProcAttr{Chroot: room}
	if os.Getuid() != 0 {
		root := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		run.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		run.SysProcAttr.UidMappings = root
	}
	out, err := run.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) {
		t.Skipf("needs root or user namespaces, to run without the files of this machine: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, want := strings.TrimSpace(string(out)), "25h0m0s"; got != want {
		t.Errorf("got a day of %q, want %q", got, want)
	}
}
