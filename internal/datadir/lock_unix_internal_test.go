//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package datadir

import (
	"errors"
	"os"
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

// No operation changes a directory that has taken the place of the locked one.
func TestReplacedFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	d, held, err := lockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close() })
	operations := map[string]func() error{
		"create": func() error { _, err := d.create("new"); return err },
		"extend": func() error { _, err := d.extend("file", 1); return err },
		"length": func() error { _, err := d.length("file"); return err },
		"rename": func() error { return d.rename("file", "other") },
		"remove": func() error { return d.remove("file") },
	}
	if err := errors.Join(os.Rename(dir, dir+" old"), os.Mkdir(dir, 0o700), os.WriteFile(d.path("file"), []byte("text"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, do := range operations {
		if err := do(); !errors.Is(err, errReplaced) {
			t.Errorf("%s: got error %v, want %v", name, err, errReplaced)
		}
	}
	if text, err := os.ReadFile(d.path("file")); string(text) != "text" {
		t.Errorf("got %q, %v", text, err)
	}
	if names, err := d.names(); len(names) != 1 {
		t.Errorf("got files %v, %v", names, err)
	}
}
