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
