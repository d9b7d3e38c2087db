//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package datadir

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// lock locks the file at path, which it makes if need be, and its directory, until the returned
// locks are closed or the process ends. It reports false when another process has one of them. The
// lock of the directory stays when somebody removes the file, but not all file systems have
// it. In a directory that is read-only and has no such file, lock locks the directory only.
func lock(path string) (held io.Closer, ok bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
		f, err = os.Open(path)
	}
	none := errors.Is(err, fs.ErrNotExist)
	if err != nil && !none {
		return nil, false, err
	}
	var all locks
	if !none {
		if all, ok, err = all.add(f); !ok || err != nil {
			return nil, false, err
		}
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, false, errors.Join(err, all.Close())
	}
	with, ok, err := all.add(dir)
	switch {
	case err != nil && !none:
		return all, true, nil // only the file can be locked
	case err != nil || !ok:
		return nil, false, errors.Join(err, all.Close())
	}
	return with, true, nil
}

// locks are files that are locked.
type locks []*os.File

// add locks f. It closes f if that fails or another process has the lock; then it reports false.
func (l locks) add(f *os.File) (all locks, ok bool, err error) {
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return l, false, f.Close()
	}
	if err != nil {
		return l, false, errors.Join(err, f.Close())
	}
	return append(l, f), true, nil
}

// Close unlocks all. A program that the process starts has the files until it runs, so closing them would not unlock them at once.
func (l locks) Close() (err error) {
	for _, f := range l {
		err = errors.Join(err, syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
	}
	return err
}
