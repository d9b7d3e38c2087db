package receipt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/receipt"
)

const text = "QAABAgMEBQYHCAkKCwwGThRbZjAAAAAAAAAAAAAAAAAAAAAAYw"

// Text that no receipt has is a fault in receipt.
func TestNoReceipt(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{
		"", "x", "latest", text[1:], text + "A", text + "AAAA", text + "==", " " + text, strings.Repeat("A", 48), "A" + text[1:], strings.Repeat("E", 200),
	} {
		_, err := receipt.Parse(wrong)
		if f := fault.Of(err); len(f) != 1 || f[0].Path != "receipt" {
			t.Errorf("read %q: got error %v, want one about the receipt", wrong, err)
		}
	}
}

func ExampleParse() {
	r, err := receipt.Parse("QAABAgMEBQYHCAkKCwwGThRbZjAAAAAAAAAAAAAAAAAAAAAAYw")
	fmt.Println(r, err)
	_, err = receipt.Parse("yesterday")
	fmt.Println(err)
	// Output:
	// QAABAgMEBQYHCAkKCwwGThRbZjAAAAAAAAAAAAAAAAAAAAAAYw <nil>
	// weir: receipt: is not a receipt of this version of weir: want the text that a take answered with
}
