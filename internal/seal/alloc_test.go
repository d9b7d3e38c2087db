package seal_test

import (
	"testing"

	"github.com/weirhq/weir/internal/seal"
)

func TestAllocations(t *testing.T) {
	key := keyOf(seal.Secret{1})
	text, room := some.String(), make([]byte, 0, seal.MaxLen)
	if n := testing.AllocsPerRun(100, func() {
		r, ok := seal.Parse(text)
		if !ok {
			t.Errorf("%q: got no receipt", text)
		}
		r = key.Seal(r)
		d := key.Digest()
		d.Text(text)
		if d.Sum(); !key.Sealed(&r) {
			t.Errorf("%+v: got no seal", r)
		}
		room = r.Append(room[:0])
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}
