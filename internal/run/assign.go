package run

import "time"

// Assignment is what weir.Engine.Run is asked to do for one key of requests that somebody else
// decides, and its answer.
type Assignment struct {
	// Settles are earlier grants of which no more is spent.
	Settles []Settle

	// Used are hits that were admitted since the last call, and Over those of them that belong to no grant that was
	// or will be settled. They are recorded: Used in rules that do not decide, and Over in limits.
	Used, Over int64

	// Denied are hits that were denied since the last call. They count nowhere.
	Denied int64

	// Want is how many hits to grant. 0 asks for none. Least and Part are those of store.Hold, and Length is how
	// long the grant should last.
	Want, Least, Part int64
	Length            time.Duration

	// Answer is set by Run.
	Answer
}

// Settle is a grant, by its id, and what of it was spent.
type Settle struct {
	ID    [12]byte
	Spent int64
}

// Answer is the answer to an [Assignment].
type Answer struct {
	// All reports whether all requests are allowed, because no limit applies to them.
	All bool

	// Granted is how many hits may be spent, within Lasts from the end of Run.
	Granted int64
	Lasts   time.Duration

	// ID names the grant. It is zero for a grant that cannot be settled.
	ID [12]byte

	// Retry is the wait until something may be granted, after nothing was.
	Retry time.Duration

	// Err is the error of this assignment, or nil.
	Err error
}
