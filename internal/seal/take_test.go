package seal_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/window"
)

var some = seal.Take{
	ID: [12]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, At: 1_774_699_200_000_000, Wall: 1_774_699_200_000_000, Counted: [seal.MostCounted]uint32{77}, Seal: [16]byte{15: 99},
}

// A receipt is the same after its text was read.
func TestText(t *testing.T) {
	t.Parallel()
	far, local := some, some
	far.Wall, far.Later = 0, window.Instant(window.MaxHits)
	far.At = window.Instant(window.MaxHits)
	local.Place, local.Seal, local.Later = seal.Local, [16]byte{0: 255, 15: 255}, 1
	for i := range local.Counted {
		local.Counted[i] = 1<<32 - 1
	}
	none := some
	none.Counted = [seal.MostCounted]uint32{}
	for _, want := range []seal.Take{some, far, local, none} {
		text := want.String()
		if len(text) > seal.MaxLen || strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			t.Errorf("got %q, want at most 162 bytes of URL-safe text", text)
		}
		if got, ok := seal.Parse(text); got != want || !ok {
			t.Errorf("read %q: got %+v, %v, want %+v", text, got, ok, want)
		}
	}
	if got := (seal.Take{}).String(); got != "" {
		t.Errorf("zero: got %q, want no text", got)
	}
}

// Receipts are as long as what they say.
func TestLength(t *testing.T) {
	t.Parallel()
	r := some
	for n, want := range map[int]int{0: 50, 1: 55, 2: 60, 3: 66, seal.MostCounted: 135} {
		r.Counted = [seal.MostCounted]uint32{}
		for i := range n {
			r.Counted[i] = uint32(i + 1)
		}
		if got := len(r.String()); got != want {
			t.Errorf("%d rules: got %d bytes, want %d", n, got, want)
		}
	}
	r.At, r.Wall, r.Later = 0, window.Instant(window.MaxHits), window.Instant(window.MaxHits)
	if got := len(r.String()); got > seal.MaxLen {
		t.Errorf("got %d bytes, want at most %d", got, seal.MaxLen)
	}
}

// What Take.String has not written is no receipt.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const late = window.Instant(window.MaxHits) + 1
	long := some
	long.Wall, long.Later = 1, 1
	text := long.String()
	refused := []string{text + "A", text + "\n", text[:10] + "\n" + text[10:], strings.Repeat("A", 50), strings.Repeat("_", 50), strings.Repeat("A", seal.MaxLen+1)}
	for n := range len(text) {
		refused = append(refused, text[:n])
	}
	for _, r := range []seal.Take{
		{At: 1, Wall: 1},
		{ID: some.ID, Place: seal.Local + 1},
		{ID: some.ID, At: late},
		{ID: some.ID, Wall: -1},
		{ID: some.ID, Wall: late},
		{ID: some.ID, Later: -1},
		{ID: some.ID, Later: late},
	} {
		refused = append(refused, r.String())
	}
	for _, text := range refused {
		if r, ok := seal.Parse(text); ok {
			t.Errorf("%q: got %+v, want it refused", text, r)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(some.String())
	f.Add(strings.Repeat("A", 48))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := seal.Parse(text)
		if !ok {
			return
		}
		again, ok := seal.Parse(r.String())
		if r.IsZero() || again != r || !ok || r.String() != text || new(seal.Key).Sealed(&r) {
			t.Errorf("read %q: got %+v, whose text is %q", text, r, r.String())
		}
	})
}
