//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// lock locks the file at path, which it makes if need be, until the returned file is
// closed or the process ends. It reports false when another process has the lock. In a
// directory that is read-only and has no such file, lock locks the directory.
func lock(path string) (held *os.File, ok bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
		if f, err = os.Open(path); errors.Is(err, fs.ErrNotExist) {
			f, err = os.Open(filepath.Dir(path))
		}
	}
	if err != nil {
		return nil, false, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, false, f.Close()
	}
	if err != nil {
		return nil, false, errors.Join(err, f.Close())
	}
	return f, true, nil
}
