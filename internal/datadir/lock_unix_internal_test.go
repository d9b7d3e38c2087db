//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package datadir

import (
	"path/filepath"
	"syscall"
	"testing"
)

// Closed locks are free although a program that starts at that instant still has the files.
func TestUnlocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, ok, err := lock(path)
	if !ok || err != nil {
		t.Fatalf("lock: %t, %v", ok, err)
	}
	for _, f := range held.(locks) {
		fd, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { syscall.Close(fd) })
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	held, ok, err = lock(path)
	if !ok || err != nil {
		t.Fatalf("lock after Close: %t, %v", ok, err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
}
