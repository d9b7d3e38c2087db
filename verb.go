package weir

import "github.com/weirhq/weir/store"

// Verb is what [Engine.Do] does with a request.
type Verb = store.Verb

const (
	Check  = store.Check  // look only
	Take   = store.Take   // look and, if admitted, count
	Record = store.Record // count whatever the limit
	Refund = store.Refund // give hits back
)

// ErrClosed is the error of calls after Close.
var ErrClosed = store.ErrClosed
