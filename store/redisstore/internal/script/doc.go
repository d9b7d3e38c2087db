// Package script holds the programs in Lua that decide calls inside Redis, and
// the codec for what they read and write. It does no IO.
//
// # Programs
//
// The files in lua/ are joined whole into programs: a head, the kinds of windows
// that a call needs, and the decision for one op or for several. The hashes of all
// programs are committed in testdata/programs.sha1; `go test -run Programs -dump DIR`
// writes the programs as they run to a folder. The table of kinds has a row per kind of window, which names its Lua file and holds its
// half of the codec.
//
// Each program without refunds has a second form for a run of independent steps.
// Its arguments come from [Run], and its reply is the replies of the steps, which
// [RepliesIn] divides. The programs that decide common calls first read the states of
// all keys of a run at once, go through its steps in one loop, and answer two or three
// numbers for each op.
//
// A server makes all names and functions of a program anew at each call, grows each of
// its tables step by step, and hashes each byte of each string. So the programs for one
// step decide common calls before they name what only others need, read all numbers of
// the argument at once, and answer as a run of one step. Steps with two or three
// sliding limits have lines of their own for each op, in lua/sliding_few.lua, which need
// no tables. Other steps with several ops that are sliding or fixed windows or buckets are
// decided in lua/common_many.lua, with a function for each kind. Takes that add a group to a log with a group for each hit are decided in
// lua/sliding_exact.lua.
//
// Steps with ops that are about holds or bans run one program for all kinds,
// around: lua/call_around.lua does with a state what package window does in
// around.go, lua/holding.lua has the holds, and the files KIND_aged.lua count hits
// of holds at the instant of their take. Other programs do not read the states
// with holds and bans. A step that meets one is sent again with this program.
//
// # Calls
//
// A program reads the keys and one argument: an instant to use in place of the
// server's (tests), the deadline, and for each op its kind, what is asked of it,
// its hits, and the numbers of its limit. Numbers have 7 bytes, the lowest
// first. The reply is a status, the server's instant, and for each op the hits
// used, the hits used before, the wait, and the time until it is unused. An op of
// the program around has more numbers, and a byte of flags in the reply.
//
// # States
//
// A state is a string that begins with its version and the code of its kind; the
// Lua file of the kind documents the rest. States of all versions that were ever
// released stay readable: a change of the form needs a new version.
package script
