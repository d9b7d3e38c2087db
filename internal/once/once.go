// Package once has what the parts of weir share about calls with an idempotency key, which take effect once.
package once

import (
	"errors"
	"time"

	"github.com/weirhq/weir/window"
)

const (
	// Default is how long the first answer is kept if the request does not say, and Most the longest that it
	// may say.
	Default = 10 * time.Minute
	Most    = 24 * time.Hour

	// MaxKey is the most bytes of a key.
	MaxKey = 128

	// Space is the identity and the name of the spaces of records.
	Space = "idempotency"

	// MaxRecords is the most answers that one process keeps for a namespace at the same time.
	MaxRecords = 1_000_000
)

// NewLimit returns the limit of the op of a record: its length is the most that a record is kept. It is no variable,
// so that programs which keep no records do not link what makes it.
func NewLimit() *window.Compiled {
	return window.MustCompile(window.Limit{Quota: window.Unlimited, Window: window.Fixed(Most)})
}

// ErrFull is the error of a call with a new key when there is no room for its answer. Nothing was counted.
var ErrFull = errors.New("no room for the answer under this idempotency_key: too many are kept; wait, or send requests without one")
