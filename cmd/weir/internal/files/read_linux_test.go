package files_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Pipes and devices are refused. A file whose size is given as 0 is read to its end.
func TestReadSpecialFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, zero := filepath.Join(dir, "pipe"), filepath.Join(dir, "zero")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", zero); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []reading{
		{pipe, 5, pipe + ": a pipe, want a regular file"},
		{zero, 5, zero + ": a device, want a regular file"},
		{"/proc/self/status", 1 << 20, "Name:"},
		{"/proc/self/status", 9, "/proc/self/status: larger than 9 bytes"},
	} {
		tc.check(t)
	}
}
