package seal_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/window"
)

var some = seal.Take{
	ID: [12]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, At: 1_774_699_200_000_000, Wall: 1_774_699_200_000_000, Digest: 77, Seal: 99,
}

// A receipt is the same after its text was read.
func TestText(t *testing.T) {
	t.Parallel()
	far, local := some, some
	far.Wall = 0
	far.At = window.Instant(window.MaxHits)
	local.Place, local.Digest, local.Seal = seal.Local, 1<<64-1, 1<<64-1
	for _, want := range []seal.Take{some, far, local} {
		text := want.String()
		if len(text) > 64 || strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			t.Errorf("got %q, want at most 64 bytes of URL-safe text", text)
		}
		if got, ok := seal.Parse(text); got != want || !ok {
			t.Errorf("read %q: got %+v, %v, want %+v", text, got, ok, want)
		}
	}
	if got := (seal.Take{}).String(); got != "" {
		t.Errorf("zero: got %q, want no text", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(some.String())
	f.Add(strings.Repeat("A", 48))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := seal.Parse(text)
		if ok && (r.String() != text || r.IsZero()) {
			t.Errorf("read %q: got %+v, whose text is %q", text, r, r.String())
		}
	})
}
