package window

import "time"

// This file is the table of kinds: the only place that tells them apart. A kind
// is a row here, a constant in limit.go, the functions that its row names, and a
// type that implements algorithm, which kinds may share.
// docs/explanation/architecture.md lists what else to extend outside this package.

// kinds has a row for each [Kind].
var kinds = [...]row{
	KindSliding: {
		name: "sliding", fields: hasLength | hasPrecision, describe: describeLength,
		compile: newSliding, members: membersOfSliding,
	},
	KindCells: {
		name: "cells", fields: hasLength | hasN, unlimited: true, undated: true, describe: describeCells,
		compile: newCells,
	},
	KindFixed: {
		name: "fixed", fields: hasLength, unlimited: true, undated: true, describe: describeLength,
		compile: newFixed, members: membersOfFixed,
	},
	KindCalendar: {
		name: "calendar", fields: hasPeriod, unlimited: true, undated: true, onWall: true, id: idOfPeriod, describe: describePeriod,
		compile: newCalendar, members: membersOfCalendar,
	},
	KindBucket: {
		name: "bucket", fields: hasLength | hasBurst, drains: true, undated: true, validate: validateBucket, describe: describeBucket,
		compile: newBucket,
	},
	KindHeld: {
		name: "held", fields: hasLength, holds: true, validate: validateHeld, describe: describeLength, // compiled by holds
	},
	KindEver: {
		name: "ever", unlimited: true, undated: true, id: idOfEver, describe: describeName,
		compile: newEver,
	},
	KindAligned: {
		name: "aligned", fields: hasLength, unlimited: true, undated: true, onWall: true, least: leastAligned, describe: describeLength,
		compile: newCalendar, members: membersOfCalendar,
	},
}

// row is a kind of window.
type row struct {
	// name is the kind's name in rules files and in identities.
	name string

	// fields are the fields of [Window] that the kind has. Validate refuses the
	// others.
	fields field

	// unlimited reports whether the kind counts without a quota ([Unlimited]).
	unlimited bool

	// undated reports whether a state does not tell if the hits of a take are still in it,
	// so that it records from when on no hits were dropped or refunded ([banState]). So do
	// a sliding window with groups of hits, and one of members.
	undated bool

	// onWall reports whether the kind follows the wall clock, so that machines that
	// count together have the same periods.
	onWall bool

	// least is the shortest length, if that is more than a microsecond.
	least time.Duration

	// drains reports whether the kind keeps a level and not a count. Such a kind
	// cannot be the window of a condition ([After]).
	drains bool

	// holds reports whether the kind counts only what is held, and so neither
	// hits that are final nor [Limit.Hold].
	holds bool

	// validate adds what is wrong with l beyond its fields, whose bounds
	// validate.go has checked. It can be nil.
	validate func(l *Limit, f *faults)

	// id returns what [Window.ID] has behind the kind's name. Nil: the length.
	id func(w *Window) string

	// describe returns [Window.String].
	describe func(name string, w *Window) string

	// compile returns the algorithm that counts hits and sums under l. Nil: see holds.
	compile func(l *Limit) algorithm

	// members returns the algorithm that counts distinct members under l. Nil:
	// the kind cannot count them.
	members func(l *Limit) algorithm
}

// wrappers has a row for each limit that wraps another limit, the outermost first.
// The state of a wrapper contains the state of the limit below it, so that a
// wrapper works with every kind.
var wrappers = [...]wrapper{
	{wraps: bans, validate: validateBan, compile: compileBan},
	{wraps: waits, validate: validateAfter, compile: compileAfter},
}

// wrapper is a limit that wraps another one.
type wrapper struct {
	// wraps reports whether l is such a limit.
	wraps func(l *Limit) bool

	// validate adds what is wrong with the wrapper's own fields.
	validate func(l *Limit, f *faults)

	// compile sets the algorithm of c, whose limit is set, and what else the
	// wrapper changes. It compiles the limits below the wrapper with below.
	compile func(c *Compiled, below func(Limit) *Compiled)
}

// algorithm is how a compiled limit counts. Its values are immutable. The
// states that sub, expires, seen and history get are not empty. Instants have
// passed [Compiled.instantFor], so they are not before the one that seen returns.
type algorithm interface {
	// look returns how much is used at now, and the instant from which h fit:
	// now or earlier when they fit at once, or never.
	look(s State, now Instant, h Hits) (used int64, fits Instant)

	// add counts h, from 1 to MaxHits, whatever the quota.
	add(s State, now Instant, h Hits) State

	// sub gives back the newest hits, if at is anytime, and otherwise at most those that
	// were counted at that instant: fewer where that cannot be told. Of members it gives
	// back one use.
	sub(s State, now, at Instant, h Hits) State

	// expires returns the instant from which s is as good as an empty state.
	expires(s State) Instant

	// seen returns the latest instant that s remembers, or 0 when it remembers
	// none. A kind without one must not be more generous at earlier instants.
	seen(s State) Instant

	// wordsAfter returns how many words the state may need after h are added.
	wordsAfter(s State, h Hits) int

	// maxWords returns the most words that a state can have.
	maxWords() int

	// history returns the hits by cell, as [Reading.History], and whether the
	// cells are parts of the window, so that a count of less than the window can
	// be estimated from them. Used is what look returns at now.
	history(s State, now Instant, used int64) (cells []Cell, cut bool)
}

// field is a set of fields of [Window].
type field uint8

const (
	hasLength field = 1 << iota
	hasPrecision
	hasN
	hasBurst
	hasPeriod // and Anchor and Zone
)
