package weir

import "github.com/weirhq/weir/store"

// Verb is what [Engine.Do] does with a request.
type Verb = store.Verb

const (
	Check  = store.Check  // decide and count nothing
	Take   = store.Take   // decide and, if admitted, count
	Record = store.Record // count without asking the limit
	Refund = store.Refund // give hits back
	Settle = store.Settle // end the holds of a take at what it really cost
	Cancel = store.Cancel // give back what one take counted
	Renew  = store.Renew  // keep the holds of a take alive
)

// ErrClosed is wrapped in the errors of calls whose store is closed. Test for it
// with [errors.Is].
var ErrClosed = store.ErrClosed
