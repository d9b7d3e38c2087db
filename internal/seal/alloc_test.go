package seal_test

import (
	"testing"

	"github.com/weirhq/weir/internal/seal"
)

func TestAllocations(t *testing.T) {
	text, room := some.String(), make([]byte, 0, seal.MaxLen)
	if n := testing.AllocsPerRun(100, func() {
		r, ok := seal.Parse(text)
		if !ok {
			t.Errorf("%q: got no receipt", text)
		}
		room = r.Append(room[:0])
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}
