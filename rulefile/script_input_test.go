package rulefile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/weirhq/weir/fault"
)

// inputText returns a command's input. With the argument escaped, \t \r \n and \xNN
// stand for characters that a script cannot hold.
func inputText(d *datadriven.TestData) string {
	if !d.HasArg("escaped") {
		return d.Input + "\n"
	}
	var text string
	_, err := fmt.Sscanf(`"`+strings.ReplaceAll(strings.ReplaceAll(d.Input, "\n", ""), `"`, `\"`)+`"`, "%q", &text)
	if err != nil {
		return err.Error()
	}
	return text
}

// scriptFiles are the texts of list files by path.
type scriptFiles map[string]string

// add runs a command that gives a file its text: `file name=PATH`.
func (f scriptFiles) add(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	var name string
	d.ScanArgs(t, "name", &name)
	f[name] = inputText(d)
}

// read returns the text at path, as os.ReadFile does.
func (f scriptFiles) read(path string) ([]byte, error) {
	text, ok := f[path]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

// refusal returns the error of a reader of files, which must be a [fault.List], as a
// person sees it.
func refusal(err error) string {
	var faults fault.List
	if !errors.As(err, &faults) {
		return fmt.Sprintf("got %T, want fault.List: %v", err, err)
	}
	return faults.Error() + "\n"
}
