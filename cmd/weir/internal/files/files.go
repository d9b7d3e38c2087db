// Package files finds, reads and replaces the files that the service is given: rules,
// lists, tokens, certificates.
package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// RelativeTo resolves path, as it is written in the file called name: a relative path starts
// in that file's directory.
func RelativeTo(name, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(name), path)
}

// patience is the time-out for reading a file, because a mount whose server has gone can block
// forever.
const patience = 10 * time.Second

// Maximum sizes of files, in bytes.
const (
	maxRules = 8 << 20  // of a rules file; it holds about ten thousand rules
	maxList  = 64 << 20 // of a list or a dictionary
)

// ErrSlow is wrapped in the error of a file that took longer than ten seconds.
var ErrSlow = errors.New("no answer")

// Rules returns the content of a rules file; see [Read]. It refuses a file of keys or
// tokens that was named by mistake, because errors in rules files repeat their lines.
func Rules(path string) ([]byte, error) {
	text, err := Read(path, maxRules)
	if err == nil && HoldsSecrets(text) {
		return nil, fmt.Errorf("%s: holds keys or tokens, which are not shown here, and no rules", path)
	}
	return text, err
}

// HoldsSecrets reports whether text is a PEM file or a tokens file.
func HoldsSecrets(text []byte) bool {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("-----BEGIN ")) {
			return true
		}
		if words := bytes.Fields(line); len(words) > 1 && bytes.HasPrefix(words[1], []byte("sha256:")) && !bytes.ContainsAny(words[0], ":-#") {
			return true
		}
	}
	return false
}

// List returns the content of a list file; see [Read].
func List(path string) ([]byte, error) { return Read(path, maxList) }

// Read returns the content of the file at path, which must be a regular file of
// at most most bytes, after links. It never waits for longer than ten seconds.
func Read(path string, most int64) ([]byte, error) {
	return within(patience, path, func() ([]byte, error) { return read(path, most) })
}

// Stat returns [os.Stat] of path. It never waits for longer than ten seconds.
func Stat(path string) (fs.FileInfo, error) {
	return within(patience, path, func() (fs.FileInfo, error) { return os.Stat(path) })
}

// Dir returns the sorted names of the entries of a directory. It never waits for longer
// than ten seconds.
func Dir(path string) ([]string, error) {
	return within(patience, path, func() ([]string, error) {
		entries, err := os.ReadDir(path)
		names := make([]string, len(entries))
		for i, e := range entries {
			names[i] = e.Name()
		}
		return names, err
	})
}

// Replace makes text the content of the file at path in one step: it writes a file beside it, and renames that when it is
// on the disk. The file gets the permissions of like and, if the process may do that, its owner and group.
func Replace(path string, text []byte, like fs.FileInfo) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // hidden, so that it is no namespace
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	giveAway(f, like)
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(like.Mode().Perm()), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// hanging has the paths of calls that have taken too long and have not ended. Further calls would hang as well, and each would
// take a thread.
var hanging sync.Map

// within returns what f returns, or an error if f takes longer than most. The goroutine of f then
// remains until f returns, and calls for the path until then get the error at once.
func within[T any](most time.Duration, path string, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	slow := fmt.Errorf("%s: %w within %v; is its file system mounted?", path, ErrSlow, most)
	if _, hangs := hanging.Load(path); hangs {
		return none, slow
	}
	done := make(chan result, 1)
	go func() {
		value, err := f()
		done <- result{value, err}
		hanging.Delete(path)
	}()
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case r := <-done:
		return r.value, r.err
	case <-late.C:
	}
	hanging.Store(path, true)
	select {
	case r := <-done: // meanwhile
		hanging.Delete(path)
		return r.value, r.err
	default:
		return none, slow
	}
}

// read reads a regular file. It opens the file with O_NONBLOCK, which does not wait for a writer if
// it is a pipe.
func read(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if kind := info.Mode().Type(); kind != 0 {
		return nil, fmt.Errorf("%s: %s, want a regular file", path, kindName(kind))
	}
	if info.Size() > most {
		return nil, tooLarge(path, most)
	}
	b := make([]byte, info.Size()+1) // one more, to see the end without growing
	n, err := io.ReadFull(f, b)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return b[:n], nil
	case err != nil:
		return nil, err
	}
	// The file has grown since, or it is one without a size.
	rest, err := io.ReadAll(io.LimitReader(f, most-int64(n)+1))
	if b = append(b, rest...); int64(len(b)) > most {
		return nil, tooLarge(path, most)
	}
	return b, err
}

func tooLarge(path string, most int64) error {
	if most >= 1<<20 {
		return fmt.Errorf("%s: larger than %d MiB", path, most>>20)
	}
	return fmt.Errorf("%s: larger than %d bytes", path, most)
}

// kindName returns the name of a kind of file that is not regular.
func kindName(kind fs.FileMode) string {
	switch {
	case kind&fs.ModeDir != 0:
		return "a directory"
	case kind&fs.ModeNamedPipe != 0:
		return "a pipe"
	case kind&fs.ModeSocket != 0:
		return "a socket"
	case kind&fs.ModeDevice != 0:
		return "a device"
	}
	return "not a regular file"
}
