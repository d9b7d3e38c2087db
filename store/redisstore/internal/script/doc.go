// Package script holds the programs in Lua that decide calls inside Redis, and
// the codec for what they read and write. It does no IO.
//
// # Programs
//
// The files in lua/ are joined whole into programs: a head, the kinds of windows
// that a call needs, and the decision. The hashes of all
// programs are committed in testdata/programs.sha1; `go test -run Programs -dump DIR`
// writes the programs as they run to a folder. The table of kinds has a row per kind of
// window, which names its Lua file and holds its half of the codec.
//
// Each program without refunds has a second form for a batch of independent calls, which
// share one script call. Its arguments come from [BatchArgs], and its reply consists of the
// replies of the calls, which [Reply.Next] divides.
//
// The program fast begins with the fast path: takes and checks whose ops are all sliding
// or fixed windows or buckets are decided by a few bytes of their states, with a function
// for each kind (fast_KIND.lua), before a server makes the names and functions that only
// others need. The function gets what is kept for the op's key, or false, the hits, and the
// limit's numbers. It returns the hits used, the wait, and the time until the key is unused;
// and if the hits can be counted, what to write, from which byte on (nil: all), the
// milliseconds after which the key expires (nil: as before), and the time until it is
// unused then. It returns nothing where only the rest of the program can decide. The
// program reads the states of all keys at once. If the fast path decides all calls of a
// batch, the reply is one status, one instant, and four doubles for each op.
//
// Calls with ops that are about holds or bans run one program for all kinds, full:
// lua/call_full.lua does with a state what package window does in
// wrapper.go, lua/holding.lua has the holds, and the files KIND_aged.lua count hits
// of holds at the instant of their take. Other programs do not read the states
// with holds and bans. A call that finds one is sent again with this program.
//
// # Calls
//
// A program reads the keys and one argument: an instant to use instead of the
// server's (tests), the deadline, and for each op its kind, what is asked of it,
// its hits, and the numbers of its limit. Numbers have 7 bytes, the lowest
// first. The reply is a status, the server's instant, and for each op the hits
// used, the hits used before, the wait, and the time until it is unused. An op of
// the program full has more numbers, and a byte of flags in the reply.
//
// # States
//
// A state is a string that begins with its version and the code of its kind; the
// Lua file of the kind documents the rest. States of all versions that were ever
// released stay readable: a change of the form needs a new version.
package script
