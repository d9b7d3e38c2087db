package receipt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/receipt"
	"github.com/weirhq/weir/window"
)

var some = receipt.Receipt{
	ID: window.HoldID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, At: 1_774_699_200_000_000, Wall: 1_774_699_200_000_000, Digest: 77, Seal: 99,
}

// A receipt is the same after its text was read.
func TestText(t *testing.T) {
	t.Parallel()
	far, local := some, some
	far.Wall = 0
	far.At = window.Instant(window.MaxHits)
	local.Place, local.Digest, local.Seal = receipt.Local, 1<<64-1, 1<<64-1
	for _, want := range []receipt.Receipt{some, far, local} {
		text := want.String()
		if len(text) > 64 || strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			t.Errorf("got %q, want at most 64 bytes of URL-safe text", text)
		}
		if got, err := receipt.Parse(text); got != want || err != nil {
			t.Errorf("read %q: got %+v and error %v, want %+v", text, got, err, want)
		}
	}
	if got := (receipt.Receipt{}).String(); got != "" {
		t.Errorf("zero: got %q, want no text", got)
	}
}

// Text that no receipt has is a fault in receipt.
func TestNoReceipt(t *testing.T) {
	t.Parallel()
	text := some.String()
	for _, wrong := range []string{
		"", "x", "latest", text[1:], text + "A", text + "==", " " + text, strings.Repeat("A", 48), "A" + text[1:], strings.Repeat("E", 200),
	} {
		_, err := receipt.Parse(wrong)
		if f := fault.Of(err); len(f) != 1 || f[0].Path != "receipt" {
			t.Errorf("read %q: got error %v, want one about the receipt", wrong, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(some.String())
	f.Add(strings.Repeat("A", 48))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := receipt.Parse(text)
		if err == nil && (r.String() != text || r.IsZero()) {
			t.Errorf("read %q: got %+v, whose text is %q", text, r, r.String())
		}
	})
}

func ExampleParse() {
	r, err := receipt.Parse("IAECAwQFBgcICQoLDAZOFFtmMAAAAAAAAAAATQAAAAAAAABj")
	fmt.Println(r.At.Time(), err)
	_, err = receipt.Parse("yesterday")
	fmt.Println(err)
	// Output:
	// 2026-03-28 12:00:00 +0000 UTC <nil>
	// weir: receipt: is not a receipt: want the text that a take answered with
}
