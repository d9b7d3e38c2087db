// Package transition has the transitions of the state of a key, which weir's own packages make by
// [window.Compiled.Do]. Programs use the methods of package window.
//
// A store.Verb is what a whole call does, and a store makes these transitions of it for each
// op: a take of several ops is a Look and then a Count, or in a store that copies states a Take.
package transition

// Transition is what [window.Compiled.Do] does. The order matters: transitions up to Take ask
// the limit, those up to RecordDenied can only add to a state, and the rest can take from it.
type Transition uint8

const (
	// Look is the method Check.
	Look Transition = iota

	// Count is the second half of a take: it counts hits that a Look has admitted since the state
	// last changed. The result is that of the Look, which becomes that of the take.
	Count

	// Take counts the hits if the limit admits all of them, and leaves the state as
	// it is if not. The hits are held as the hold, if takes under the limit hold.
	Take

	// Record counts the hits without asking the quota. The hits are held as the hold,
	// even past the quota. If the hold is over, or if the key has its highest number
	// of holds, they are recorded without a hold. A hold that the key has already
	// stays as it is, and nothing is counted.
	Record

	// RecordNow is Record with a hold that begins now and lasts as long as takes hold.
	RecordNow

	// RecordNoStrike is Record, but never a strike.
	RecordNoStrike

	// RecordDenied counts the hits of a take that was denied, by this limit or by
	// another one: it is Record without a hold, but never a strike. While the key is
	// banned it moves the end of the ban to its length from now.
	RecordDenied

	// Refund is the method of that name.
	Refund

	// Settle ends the hold. The hits, which can be more than were held, become final:
	// in a bucket now, in other windows at the instant of the take. A negative number
	// means what was held, and 0 ends the hold as if the take had not happened. In a
	// held window nothing becomes final.
	Settle

	// Renew moves the end of the hold to the length of a hold after now, unless takes
	// under the limit no longer hold.
	Renew

	// GiveBack gives back the hits of an admitted take at the hold's At, which was
	// counted without a hold. It gives back only hits that are certainly still counted:
	//
	//   - in a sliding window those of that instant, in cells those of its cell
	//   - in a fixed or calendar window all of them, if it is still the same window
	//   - in a bucket those that have not drained since
	//   - a member, if it was not used since
	GiveBack

	// Set makes the hits the only ones that count, dated now, and never a strike. Where holds
	// are alive it changes nothing and sets Held. It also changes nothing while the key is
	// banned, and under a limit that counts members or what is in flight.
	Set

	// Unban ends the ban. Strikes and holds stay.
	Unban

	// Reserve holds the hits from now for as long as the hold lasts, from At to End, if the limit admits
	// them, and moves At and End to that. In a fixed or calendar window the hold ends with the period. What
	// it costs counts at the instant at which it ends. A limit that cannot reserve denies it for good, and
	// the ID of a hold that is alive until that has ended. The state stays as it is if it is denied.
	Reserve

	// CanReserve evaluates Reserve, and changes nothing.
	CanReserve

	// Tally writes the number of holds that are alive into Used of the result, and sets
	// Banned. It writes nothing else.
	Tally
)
