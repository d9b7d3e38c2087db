// Package lease is the protocol by which an instance spends a part of a shared quota from its own
// memory. It is pure: it has no clock, no lock, and no network. Package leasestore drives it, and the tests of
// this package explore all that can happen to it.
//
// # Protocol
//
// A [Key] is the state of one leased key at one instance. It asks the store for a part of the quota
// ([Key.Ask]): the store holds what it grants until the end E of the lease, the length of the lease after
// its decision, and counts it at E. The instance spends the grant until it has measured that length, less a
// margin, on its own steady clock from before the request was sent ([Key.Granted]). So it stops before E
// if its clock is slower than the store's by no more than the margin; the two clocks need not agree. At its end, or
// earlier, it closes the lease and settles it ([Key.End], [Key.Recall]): what was spent then counts at the instant of the
// settle, and the rest is given back. A settle that arrives after E, or again, changes nothing.
//
// A decision loads the [View] first and reads the clock then, and spends in one atomic step ([View.Decide]).
// The admission happens at that reading.
//
// # Bound
//
// In any window (t-W, t] at most the quota L is admitted. Proof: of the leases and direct hits that were used in the
// window, take the one that the store granted last, at g ≤ t. Every other one was granted before g, and was used
// at some u > t-W. At g the store counted what was used of it: in full while it was held, and after that dated at E or
// at its settle, both not before u, so later than t-W ≥ g-W. The grant at g made the count at most L. What was given back can no longer
// be used, because the lease was closed first, and it is taken from the hold of its lease only.
//
// A clock that was read before the view could spend a lease at an instant before its grant, and
// a settle that has effect twice, or that frees units other than those of its lease, would let the store grant
// what is in use. Requests and replies that are lost, late or doubled, crashes and pauses only leave units unused.
//
// # Credit
//
// With a credit of c an instance also admits up to c units that the store does not know of, when it has no
// lease left and is not refused. Each ask first has the store count those, as many as fit, and is refused if some do not. What was counted
// is restored, in a new place. So N instances admit at most L + N·c in a window: at the last grant, direct hit or count of credit
// in it, the store counted at most L, of hits that are dated not before they were spent. What an instance has spent at readings of its clock up to t
// and the store had not counted by then is at most c, because credit comes back only when it is counted, and nobody spends what
// came back at an earlier reading.
//
// A new key has all of its credit, so it may only take the place of one of whose credit the store has counted all that was spent
// ([Key.Retire]). An instance that is restarted has its credit anew.
package lease
