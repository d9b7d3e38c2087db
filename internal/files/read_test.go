package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/files"
)

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
	if err := syscall.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", at("zero")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path string
		most int64
		want string // of the error, or the content
	}{
		{at("five"), 5, "12345"},
		{at("link"), 5, "12345"},
		{at("five"), 4, at("five") + ": larger than 4 bytes"},
		{at("pipe"), 5, at("pipe") + ": a pipe, want a regular file"},
		{at("zero"), 5, at("zero") + ": a device, want a regular file"},
		{dir, 5, dir + ": a directory, want a regular file"},
		{"/proc/self/status", 1 << 20, "Name:"}, // says that it is empty
		{"/proc/self/status", 9, "/proc/self/status: larger than 9 bytes"},
		{at("none"), 5, "open " + at("none") + ": no such file or directory"},
	} {
		b, err := files.Read(tc.path, tc.most)
		got := string(b)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: got %.80q, want %q", tc.path, got, tc.want)
		}
	}
}

// A file system that does not answer costs no more than the time-out.
func TestReadGivesUp(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	defer close(hang)
	_, err := files.Within(10*time.Millisecond, "/mnt/rules.yaml", func() ([]byte, error) { <-hang; return nil, nil })
	if err == nil || err.Error() != "/mnt/rules.yaml: no answer within 10ms; is its file system mounted?" {
		t.Errorf("got %v, want that there was no answer", err)
	}
}
