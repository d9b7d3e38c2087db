package receipt_test

import (
	"testing"

	"github.com/weirhq/weir/receipt"
)

func TestAllocations(t *testing.T) {
	text, room := some.String(), make([]byte, 0, receipt.MaxLen)
	if n := testing.AllocsPerRun(100, func() {
		r, err := receipt.Parse(text)
		if err != nil {
			t.Error(err)
		}
		room = r.Append(room[:0])
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}
