// Package export has the options and the results of weir.Engine.Export, by which weir's
// service lists the keys of a rule, or the holds of one key.
package export

import (
	"errors"
	"time"

	"github.com/weirhq/weir/window"
)

// Options are the options of an export.
type Options struct {
	// Closed exports the calendar period that ended last, instead of what is counted now.
	Closed bool

	// After is where an earlier export ended ([Result.Next]). Nil begins with the first key.
	After []byte

	// Most ends the export after at least so many keys. 0 means all.
	Most int64

	// Begin is called before the first key, when the store has answered, with the rule's `per`. Each is called for
	// each key, and must not keep it. The error of either ends the export.
	Begin func(per []string) error
	Each  func(*Key) error

	// Of, if it is not nil, are the attributes of one key. Then Holds is called with what that key holds
	// ([window.Reading]), and no keys are listed.
	Of    map[string]string
	Holds func([]window.Cell)
}

// Key is what a rule has counted for one key, at one instant.
type Key struct {
	Values []string // by the rule's `per`; of addresses that count by network, the network

	Used int64 // final hits; of a limit on places in flight 0
	Held int64 // hits of holds that are alive, which are not in Used

	Quota      int64 // [window.Unlimited] for a counter
	QuotaKnown bool  // false if the quota depends on an attribute that is not in `per`

	// Start and Length are the period in which Used was counted, of fixed, calendar and aligned
	// windows. Length is 0 for others, and for a fixed window without hits.
	Start  window.Instant
	Length time.Duration

	History []window.Cell // of a cells window: see [window.Reading]

	At window.Instant // of the numbers
}

// HasQuota reports whether the quota of k is a number that is known.
func (k *Key) HasQuota() bool { return k.QuotaKnown && k.Quota != window.Unlimited }

// Result is how an export ended.
type Result struct {
	Keys    int64  // that were exported
	Unknown int64  // keys that the store has, and does not know the attributes of
	Next    []byte // where another export goes on; nil: this one is complete
}

var (
	// ErrNotKept is the error for a rule without `export` whose keys are in memory.
	ErrNotKept = errors.New("keys are not kept: set export: true in the rule, which keeps those that are counted from then on")
	// ErrNoPeriod is the error for a rule that keeps no closed period.
	ErrNoPeriod = errors.New("no closed period is kept: that needs a rule with export: true and a calendar window, without distinct, after and ban")
	// ErrNoLevel is the error for a bucket whose level cannot be computed.
	ErrNoLevel = errors.New("the level of a bucket depends on its limit, which depends on an attribute that is not in per")
	// ErrNoList is the error for a store that cannot list keys.
	ErrNoList = errors.New("keys are not kept: this store cannot list them")
)

// Recent notices keys that are listed again soon. It forgets old ones, so its memory is
// bounded. The zero value is ready.
type Recent [1 << 16]uint64

// Again reports whether a key with this hash was one of the last, and makes it one. It
// can miss some.
func (r *Recent) Again(hash uint64) bool {
	at := &r[hash%uint64(len(r))]
	if *at == hash && hash != 0 {
		return true
	}
	*at = hash
	return false
}
