package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// disk is a directory. Tests use one that fails, and one that loses what was not synced.
type disk interface {
	names() ([]string, error)

	// create makes a file that must not exist.
	create(name string) (file, error)

	// extend opens a file to append to it, after cutting it to size bytes.
	extend(name string, size int64) (file, error)

	open(name string) (source, error)
	length(name string) (size int64, err error)
	remove(name string) error
	rename(name, to string) error

	// sync makes files that were created, removed or renamed survive a power loss.
	sync() error
}

// file is a file that is appended to.
type file interface {
	Write(b []byte) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// source is a file that is read.
type source interface {
	io.ReaderAt
	Size() int64
	Close() error
}

// folder is a directory of the operating system.
type folder struct {
	dir    string
	locked fs.FileInfo // of the directory that this process has locked; nil: of none
}

var errReplaced = errors.New("the directory was replaced while this process used it; move it back, or restart on the new one")

// ours returns an error if another directory than the locked one is at the path: it is for another
// process, or for the next one, to write.
func (d folder) ours() error {
	if d.locked == nil {
		return nil
	}
	if info, err := os.Stat(d.dir); err == nil && !os.SameFile(info, d.locked) {
		return errReplaced
	}
	return nil // or what is done there fails
}

func (d folder) path(name string) string { return filepath.Join(d.dir, name) }

func (d folder) names() ([]string, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		regular := e.Type().IsRegular()
		if e.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(d.path(e.Name()))
			regular = err == nil && info.Mode().IsRegular()
		}
		if regular {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (d folder) create(name string) (file, error) {
	if err := d.ours(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(d.path(name), os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d folder) extend(name string, size int64) (file, error) {
	if err := d.ours(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(d.path(name), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || info.Size() != size {
		if err == nil {
			err = f.Truncate(size)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

func (d folder) open(name string) (source, error) {
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return sizedFile{f, info.Size()}, nil
}

type sizedFile struct {
	*os.File
	size int64
}

func (f sizedFile) Size() int64 { return f.size }

func (d folder) length(name string) (size int64, err error) {
	if err := d.ours(); err != nil {
		return 0, err
	}
	info, err := os.Stat(d.path(name))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (d folder) remove(name string) error {
	if err := d.ours(); err != nil {
		return err
	}
	return os.Remove(d.path(name))
}

func (d folder) rename(name, to string) error {
	if err := d.ours(); err != nil {
		return err
	}
	return os.Rename(d.path(name), d.path(to))
}

func (d folder) sync() error { return syncFolder(d.dir) }

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		err = nil // this file system has nothing to sync
	}
	return errors.Join(err, f.Close())
}

// makeFolder makes the directory dir, which only this user can read, because its files have
// the secret of the fingerprints. It calls sync for the parent of each directory that it makes.
// Otherwise a power loss could remove the directory with everything that was synced in it.
func makeFolder(dir string, sync func(dir string) error) error {
	var parents []string
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		parents = append(parents, filepath.Dir(at))
	}
	err := os.MkdirAll(dir, 0o700)
	if err != nil {
		if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() {
			return nil // a read-only file system
		}
		if errors.Is(err, syscall.ENOTDIR) {
			return fmt.Errorf("%s is not a directory", dir)
		}
		return err
	}
	for _, parent := range parents {
		// A directory may be made where its parent cannot be read, or synced.
		if err := sync(parent); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}
