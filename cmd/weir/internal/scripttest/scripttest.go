// Package scripttest has what several tests with scripts share: the
// input of a command, files that a script gives, and an engine whose clock the
// script sets. Only tests import it.
package scripttest

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rulefile"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// Text returns a command's input. With the argument escaped, \t \r \n and \xNN
// stand for characters that a script cannot hold.
func Text(d *datadriven.TestData) string {
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

// Duration returns a command's first argument as a duration.
func Duration(t *testing.T, d *datadriven.TestData) time.Duration {
	t.Helper()
	length, err := time.ParseDuration(d.CmdArgs[0].Key)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return length
}

// Files are texts by path.
type Files map[string]string

// Add runs a command that gives a file its text: `file name=PATH`.
func (f Files) Add(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	var name string
	d.ScanArgs(t, "name", &name)
	f[name] = Text(d)
}

// Read returns the text at path, as os.ReadFile does.
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

// Start is when scripts with a clock begin.
var Start = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

// NewEngine returns an engine for a rules file, and its store in memory, which
// takes the time from now.
func NewEngine(
	t testing.TB, rules string, now func() window.Instant, options ...weir.Option,
) (*weir.Engine, *memstore.Store) {
	t.Helper()
	file, err := rulefile.Parse("rules.yaml", []byte(rules), nil)
	if err != nil {
		t.Fatal(err)
	}
	counts := memstore.New(memstore.WithClock(now))
	t.Cleanup(func() { counts.Close() })
	engine, err := weir.NewEngine(file.Set, append([]weir.Option{weir.WithStore(counts)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return engine, counts
}
