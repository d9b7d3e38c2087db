//go:build unix

package files_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/files"
)

// A service that reads its rules as another user reads them also after root has replaced them.
func TestReplaceKeepsTheOwner(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root gives files away")
	}
	name := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(name, []byte("a"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(name, 4711, 4712); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Replace(name, []byte("b"), info); err != nil {
		t.Fatal(err)
	}
	if info, err = os.Stat(name); err != nil {
		t.Fatal(err)
	}
	if of := info.Sys().(*syscall.Stat_t); of.Uid != 4711 || of.Gid != 4712 || info.Mode() != 0o640 {
		t.Errorf("got owner %d:%d and mode %v, want 4711:4712 and 0640", of.Uid, of.Gid, info.Mode())
	}
}
