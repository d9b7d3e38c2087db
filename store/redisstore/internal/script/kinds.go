package script

import (
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// kind is a row of the table of kinds: all that this package needs to know about
// one kind of window, or about a limit around others.
type kind struct {
	code   byte   // in states and calls
	lua    string // its Lua file, and its name among the programs
	family string // the Lua file that its family shares; empty for none
	name   string // for people

	window   window.Kind // the windows that the row is for,
	distinct bool        // and whether their hits are members
	calendar bool        // its calls carry calendar periods
	fast     bool        // the fast path decides calls with ops of the kind
	wraps    bool        // a limit with a base: its calls run mixed programs
	full     bool        // its calls run the full program

	// numbers appends the numbers of a limit, as the kind's open function in Lua
	// reads them. Those of a wrapped base and inner limit follow by themselves.
	numbers func(c *Codec, b []byte, l *window.Compiled, near window.Instant) []byte

	// stays returns how long a hit at an instant is in the window, or less. A
	// fixed window that has begun before counts as one that begins.
	stays func(l *window.Compiled, at window.Instant) time.Duration

	// decode returns the body of a state in words, as package window keeps it,
	// and reports whether it could. A wrapper has none: its state is two others.
	decode func(k *Kept, body string) (window.State, bool)

	// describe writes the words of a state for people.
	describe func(p *page, s window.State)
}

// The codes of the kinds. They are part of every state.
const (
	codeSliding byte = 1 + iota
	codeCells
	codeFixed
	codeCalendar
	codeBucket
	codeAfter
	codeMembers // in a sliding window
	codeMembersFixed
	codeMembersCalendar
	codeEver
	codeHeld

	maxCode = codeHeld
)

// The codes of states that wrap those of a kind: with holds, and with a ban.
const (
	codeHolding byte = 12 + iota
	codeBan
)

// kinds are the rows, by code. Families stand together.
var kinds = [maxCode]kind{
	{
		code: codeSliding, lua: "sliding", name: "sliding window",
		window: window.KindSliding, fast: true,
		numbers: slidingNumbers, stays: staysItsLength,
		decode: decodeSliding, describe: (*page).sliding,
	},
	{
		code: codeCells, lua: "cells", name: "cells",
		window:  window.KindCells,
		numbers: cellsNumbers, stays: staysItsLength,
		decode: decodeCells, describe: (*page).cells,
	},
	{
		code: codeFixed, lua: "fixed", family: "period", name: "fixed window",
		window: window.KindFixed, fast: true,
		numbers: lengthNumbers, stays: staysItsLength,
		decode: decodePeriod, describe: period("began"),
	},
	{
		code: codeCalendar, lua: "calendar", family: "period", name: "calendar window",
		window: window.KindCalendar, calendar: true,
		numbers: calendarNumbers, stays: staysItsPeriod,
		decode: decodeCalendar, describe: period("ends"),
	},
	{
		code: codeBucket, lua: "bucket", name: "bucket",
		window: window.KindBucket, fast: true,
		numbers: bucketNumbers, stays: staysUntilDrained,
		decode: decodeBucket, describe: (*page).bucket,
	},
	{
		code: codeAfter, lua: "after", name: "limit after a count", wraps: true,
		numbers: afterNumbers,
	},
	{
		code: codeMembers, lua: "members_sliding", family: "members", name: "distinct members in a sliding window",
		window: window.KindSliding, distinct: true,
		numbers: membersNumbers, stays: staysItsLength,
		decode: decodeMembers, describe: (*page).members,
	},
	{
		code: codeMembersFixed, lua: "members_fixed", family: "members", name: "distinct members in a fixed window",
		window: window.KindFixed, distinct: true,
		numbers: membersNumbers, stays: staysItsLength,
		decode: decodeMembersOfPeriod, describe: membersOf("began"),
	},
	{
		code: codeMembersCalendar, lua: "members_calendar", family: "members", name: "distinct members in a calendar window",
		window: window.KindCalendar, distinct: true, calendar: true,
		numbers: membersOfCalendarNumbers, stays: staysItsPeriod,
		decode: decodeMembersOfPeriod, describe: membersOf("ends"),
	},
	{
		code: codeEver, lua: "ever", name: "window without an end",
		window:  window.KindEver,
		numbers: quotaNumber, stays: staysForEver,
		decode: decodeEver, describe: (*page).ever,
	},
	{
		code: codeHeld, lua: "held", name: "places in flight", full: true,
		window:  window.KindHeld,
		numbers: lengthNumbers, stays: staysItsLength,
		decode: decodeHeld, describe: (*page).held,
	},
}

// kindOf returns the row of a code, or nil when there is none.
func kindOf(code byte) *kind {
	if code < 1 || code > maxCode {
		return nil
	}
	return &kinds[code-1]
}

// kindFor returns the row for a limit.
func kindFor(l *window.Compiled) *kind {
	if l.After.Count > 0 {
		return &kinds[codeAfter-1]
	}
	w, distinct := l.Window.Kind, l.Measure == window.Distinct
	if w == window.KindAligned { // their periods come with the call, too
		w = window.KindCalendar
	}
	for i := range kinds {
		if k := &kinds[i]; k.window == w && k.distinct == distinct && !k.wraps {
			return k
		}
	}
	panic("script: a limit of a kind without a row")
}

// Inside returns how long what op has counted at an instant stays in its window,
// or less. With a condition there are two windows, and the key is in use until
// the hits are out of both.
func Inside(op *store.Op, at window.Instant) time.Duration {
	inUse := op.Result.ResetAfter
	if inUse == window.Never {
		inUse = forEver
	}
	base, inner := op.Limit.Parts()
	if base == nil {
		return inUse
	}
	return min(inUse, kindFor(base).stays(base, at), kindFor(inner).stays(inner, at))
}

// forEver takes the place of [window.Never], which is less than every other time.
const forEver = 100 * 365 * 24 * time.Hour

func staysItsLength(l *window.Compiled, _ window.Instant) time.Duration {
	return l.Window.Length
}

func staysItsPeriod(l *window.Compiled, at window.Instant) time.Duration {
	_, end := l.Window.PeriodBounds(at)
	return end.Sub(at)
}

// staysUntilDrained returns the time in which a bucket drains by one hit.
func staysUntilDrained(l *window.Compiled, _ window.Instant) time.Duration {
	return l.Window.Length / time.Duration(max(l.Quota, 1))
}

func staysForEver(*window.Compiled, window.Instant) time.Duration { return forEver }
