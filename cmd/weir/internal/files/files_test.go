package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/files"
)

func TestRelativeTo(t *testing.T) {
	t.Parallel()
	absolute, err := filepath.Abs("staff.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, path, want string }{
		{"conf/rules.yaml", "lists/staff.txt", "conf/lists/staff.txt"},
		{"conf/rules.yaml", "../staff.txt", "staff.txt"},
		{"rules.yaml", "staff.txt", "staff.txt"},
		{"conf/rules.yaml", absolute, absolute},
	} {
		if got, want := files.RelativeTo(tt.name, tt.path), filepath.FromSlash(tt.want); got != want {
			t.Errorf("%s in %s: got %s, want %s", tt.path, tt.name, got, want)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("five"), []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("five", at("link")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []reading{
		{at("five"), 5, "12345"},
		{at("link"), 5, "12345"},
		{at("five"), 4, at("five") + ": larger than 4 bytes"},
		{dir, 5, dir + ": a directory, want a regular file"},
		{at("none"), 5, "open " + at("none") + ": "},
	} {
		tc.check(t)
	}
}

// reading is a call of files.Read.
type reading struct {
	path string
	most int64
	want string // how the error begins, or the content
}

func (r reading) check(t *testing.T) {
	t.Helper()
	b, err := files.Read(r.path, r.most)
	got := string(b)
	if err != nil {
		got = err.Error()
	}
	if !strings.HasPrefix(got, r.want) {
		t.Errorf("%s: got %.80q, want %q", r.path, got, r.want)
	}
}

// A file system that does not answer costs no more than the time-out, and one thread for each file, however often it is read.
func TestReadGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var reads atomic.Int64
		read := func() ([]byte, error) {
			return files.Within(10*time.Millisecond, "/mnt/rules.yaml", func() ([]byte, error) { reads.Add(1); <-hang; return []byte("rules"), nil })
		}
		for range 3 {
			if _, err := read(); err == nil || err.Error() != "/mnt/rules.yaml: no answer within 10ms; is its file system mounted?" {
				t.Errorf("got %v, want that there was no answer", err)
			}
		}
		if reads.Load() != 1 {
			t.Errorf("got %d reads that hang, want one", reads.Load())
		}
		close(hang)
		synctest.Wait()
		if b, err := read(); string(b) != "rules" || err != nil {
			t.Errorf("got %q and %v, want what the file system answers again", b, err)
		}
	})
}

// A file of keys or tokens is refused where a rules file belongs, and not repeated.
func TestRulesRefusesSecrets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"-----BEGIN PRIVATE KEY-----\nMIGH\n":                                    true,
		"# of the host\n-----BEGIN CERTIFICATE-----\nMIGH\n":                     true,
		"# tokens\nshop sha256:8b7513f803500e62f06fc8d5f1ecb7ba scopes=decide\n": true,
		"rules:\n  - image: sha256:8b7513f803500e62f06fc8d5f1ecb7ba\n":           false,
		"rules: [] # -----BEGIN\n":                                               false,
	} {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := files.Rules(path)
		if refused := err != nil; refused != want || refused && strings.Contains(err.Error(), "8b75") {
			t.Errorf("%q: got %v, want it refused: %v", text, err, want)
		}
	}
}
