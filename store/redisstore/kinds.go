package redisstore

// kind is a row of the table of kinds: what the codec and the programs need to
// know about one kind of window, or about a wrapper around windows.
type kind struct {
	code   byte   // in states and calls
	lua    string // its Lua file, and its name among the programs
	family string // the Lua file that its family shares; empty for none

	name     string // for people
	calendar bool   // its calls carry calendar periods
	fast     bool   // there are fast programs for it
	wraps    bool   // it is a limit around others: its calls run mixed programs
}

// The codes of the kinds. A state begins with its version and its code.
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

	maxCode = codeMembersCalendar
)

// kinds are the rows, by code. Families stand together.
var kinds = [...]kind{
	{code: codeSliding, lua: "sliding", fast: true, name: "sliding window"},
	{code: codeCells, lua: "cells", name: "cells"},
	{code: codeFixed, lua: "fixed", family: "period", name: "fixed window"},
	{code: codeCalendar, lua: "calendar", family: "period", calendar: true, name: "calendar window"},
	{code: codeBucket, lua: "bucket", name: "bucket"},
	{code: codeAfter, lua: "after", wraps: true, name: "limit after a count"},
	{code: codeMembers, lua: "members_sliding", family: "members", name: "distinct members in a sliding window"},
	{code: codeMembersFixed, lua: "members_fixed", family: "members", name: "distinct members in a fixed window"},
	{code: codeMembersCalendar, lua: "members_calendar", family: "members", calendar: true, name: "distinct members in a calendar window"},
}

// kindOf returns the row of a code, or nil when there is none.
func kindOf(code byte) *kind {
	if code < 1 || code > maxCode {
		return nil
	}
	return &kinds[code-1]
}
