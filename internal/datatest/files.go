package datatest

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/weirhq/weir/fault"
)

// Files are texts by path.
type Files map[string]string

// Add runs a command that gives a file its text: `file name=PATH`.
func (f Files) Add(d *TestData) { f[d.Arg("name")] = d.Text() }

// Read returns the text at path, as [os.ReadFile] does.
func (f Files) Read(path string) ([]byte, error) {
	text, ok := f[path]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

// Refusal returns the error of a reader of files, which must be a [fault.List],
// as a person sees it.
func Refusal(err error) string {
	var faults fault.List
	if !errors.As(err, &faults) {
		return fmt.Sprintf("got %T, want fault.List: %v", err, err)
	}
	return faults.Error() + "\n"
}
