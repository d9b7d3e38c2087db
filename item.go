package weir

import "github.com/weirhq/weir/store"

// Item is one request of a batch for [Engine.DoAll], and its answer.
type Item struct {
	// Verb is what to do with the request. Its zero value is [store.Check], which
	// counts nothing. Over HTTP a request without a verb is a take.
	Verb store.Verb

	Request Request

	// Decision is the answer. [Engine.DoAll] reuses its slices.
	Decision Decision

	// Err is the error of this item, or nil. After an error Decision holds no answer, and
	// nothing was counted for the item, unless the context ended during a call over the network.
	Err error
}
