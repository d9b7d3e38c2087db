-- Every script is this file, the kinds of windows that a call needs, and
-- call.lua. The kinds say the same as package window, on packed states; what a
-- rule means is written there, and tests hold both to equal answers.
--
-- Numbers are whole and below 2^53. struct's I7 holds them.
local up, pk, cut, floor, call = struct.unpack, struct.pack, string.sub, math.floor, redis.call

local MAX = 9007199254740991       -- window.MaxHits
local NEVER = 9007199254740992     -- hits that will not fit

-- The call: an instant to use instead of the server's and the deadline, 0 for
-- none, the number of ops, and the ops, which open functions read on from p.
local args = ARGV[1]
local now, deadline, count, p = up('<I7I7I2', args)

-- A kind has an open function, by its code. It takes a state, where in it to
-- start (v is false for an unused key) and the instant; it reads the limit's
-- numbers from the args. What it gives answers as a window does:
--   look(o, n)  how much is used, and 0 if n more fit now, else when
--   add(o, n)   counts n hits
--   sub(o, n)   takes the newest n back; true when that changes nothing
--   expires(o)  when it is as good as unused; 0 when it is
--   save(o)     the state to keep, nil for none
local open = {}
local off = false -- the instant is outside the periods that came with the call
