package files_test

import (
	"path/filepath"
	"testing"

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
