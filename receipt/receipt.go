// Package receipt defines receipts. A receipt names a take that holds hits. The
// caller of the take passes the receipt, as short text, to settle, cancel or renew.
//
// A receipt is sealed with a secret of the store, so that callers can neither make one
// nor change one. A receipt without the right seal names no take.
package receipt

import (
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/seal"
)

// Receipt names one admitted take. The zero value names no take. Receipts are
// comparable.
type Receipt struct {
	// Take is the content of the receipt, which only weir reads.
	Take seal.Take
}

// IsZero reports whether r names no take.
func (r Receipt) IsZero() bool { return r.Take.IsZero() }

// String returns the text of r: at most 162 characters that are safe in a URL. It is
// empty for the zero value.
func (r Receipt) String() string { return r.Take.String() }

// Parse reads the text of a receipt. Its error is a [*fault.Fault]. Parse checks
// only the format: it does not know the key of the seal, nor whether a take with
// this receipt exists.
func Parse(text string) (Receipt, error) {
	if text == "" {
		return Receipt{}, fault.Newf("receipt", "is missing: want the text that a take answered with")
	}
	take, ok := seal.Parse(text)
	if !ok {
		return Receipt{}, fault.Newf("receipt", "is not a receipt of this version of weir: want the text that a take answered with")
	}
	return Receipt{take}, nil
}
