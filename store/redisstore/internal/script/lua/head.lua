-- The head of every program. A program is this file, one that reads the state
-- or decides the common case, the kinds of windows that the call needs, and
-- call_one.lua or call_many.lua; package script joins them. The kinds do the
-- same as package window, on packed states: package window documents what they
-- mean, and tests hold both to equal answers.
--
-- Numbers are whole and below 2^53. struct's I7 holds them.
local up, pk, cut, floor, call = struct.unpack, struct.pack, string.sub, math.floor, redis.call

local MAX = 9007199254740991       -- window.MaxHits
local NEVER = 9007199254740992     -- the wait of hits that can never fit

-- What the caller asks for an op.
local LOOK, ENFORCE, SHADOW, RECORD, REFUND = 0, 1, 2, 3, 4 -- + 8: count it when it is not admitted

-- A reply begins with a status and the instant. After DONE follow the numbers
-- of each op. With every other status nothing was counted.
local DONE, STALE, CLOCK, BROKEN, FOREIGN = 0, 1, 2, 3, 4

-- The argument holds an instant that replaces the server's and the deadline,
-- each 0 for none, then the number of ops, then the ops. p is the position of
-- the next number to read.
local args, p = ARGV[1], 17
local now, deadline, total = up('<I7I7I2', args)
local slack = 1 -- milliseconds that a key outlives its state
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
else
  slack = 3600000
end
if deadline > 0 and now > deadline then return pk('<BI7', STALE, now) end
