package seal_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/window"
)

var some = seal.Take{
	ID: [12]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, At: 1_774_699_200_000_000, Wall: 1_774_699_200_000_000, Digest: 77, Seal: [16]byte{15: 99},
}

// A receipt is the same after its text was read.
func TestText(t *testing.T) {
	t.Parallel()
	far, local := some, some
	far.Wall = 0
	far.At = window.Instant(window.MaxHits)
	local.Place, local.Digest, local.Seal = seal.Local, 1<<64-1, [16]byte{0: 255, 15: 255}
	for _, want := range []seal.Take{some, far, local} {
		text := want.String()
		if len(text) > seal.MaxLen || strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			t.Errorf("got %q, want at most 72 bytes of URL-safe text", text)
		}
		if got, ok := seal.Parse(text); got != want || !ok {
			t.Errorf("read %q: got %+v, %v, want %+v", text, got, ok, want)
		}
	}
	if got := (seal.Take{}).String(); got != "" {
		t.Errorf("zero: got %q, want no text", got)
	}
}

// old is a receipt of the version before.
const old = "IImTgqQ8GM7vSWmDQAZg2bO_xkAAAAAAAAAAAKd0t6r9-ZjY"

// A receipt of the version before is a receipt that no key has sealed, also when a
// client has read it and passes it on.
func TestOldReceipt(t *testing.T) {
	t.Parallel()
	got, ok := seal.Parse(old)
	again, okAgain := seal.Parse(got.String())
	if !ok || !okAgain || again != got || got.IsZero() || got.Seal != [16]byte{} || new(seal.Key).Sealed(&got) {
		t.Errorf("got %+v, %v, and then %+v, %v; want a take without a seal", got, ok, again, okAgain)
	}
	for _, text := range []string{old[:47], strings.Repeat(old, 2), "I" + strings.Repeat("A", 47), "E" + old[1:]} {
		if got, ok := seal.Parse(text); ok {
			t.Errorf("%q: got %+v, want no receipt", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(old)
	f.Add(some.String())
	f.Add(strings.Repeat("A", 48))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := seal.Parse(text)
		if !ok {
			return
		}
		again, ok := seal.Parse(r.String())
		if r.IsZero() || again != r || !ok || text[0] != 'I' && r.String() != text || new(seal.Key).Sealed(&r) {
			t.Errorf("read %q: got %+v, whose text is %q", text, r, r.String())
		}
	})
}
