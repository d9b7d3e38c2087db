package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// mountSmall mounts a file system of so many bytes on a directory.
func mountSmall(dir string, bytes int) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes))
}

// remount makes such a file system read-only, or writable again.
func remount(dir string, readOnly bool) error {
	flags := uintptr(syscall.MS_REMOUNT)
	if readOnly {
		flags |= syscall.MS_RDONLY
	}
	return syscall.Mount("tmpfs", dir, "tmpfs", flags, "")
}

func unmount(t *testing.T, dir string) {
	if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
		t.Error(err)
	}
}

// mountHung mounts a file system on a directory whose server never answers, as that
// of a network file system that has gone.
func mountHung(t *testing.T, dir string) {
	t.Helper()
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no FUSE here: %v", err)
	}
	err = syscall.Mount("hung", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fuse.Fd()))
	if err != nil {
		_ = fuse.Close()
		t.Skipf("a mount needs root: %v", err)
	}
	t.Cleanup(func() {
		_ = fuse.Close() // ends what waits for it
		unmount(t, dir)
	})
}

// fillDisk writes a file until there is no room.
func fillDisk(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
