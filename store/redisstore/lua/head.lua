-- Every script is this file, fast.lua where it helps, the kinds of windows that
-- the call needs, and call.lua. The kinds say the same as package window, on
-- packed states: what a rule means is written there, and tests hold both to
-- equal answers. A line "--: name" begins lines for calls that need what is
-- named, "--: not name" for others, "--: all" ends them.
--
-- Numbers are whole and below 2^53. struct's I7 holds them.
local up, pk, cut, floor, call = struct.unpack, struct.pack, string.sub, math.floor, redis.call

local MAX = 9007199254740991       -- window.MaxHits
local NEVER = 9007199254740992     -- when hits fit that never do

-- What an op asks for.
local LOOK, ENFORCE, SHADOW, RECORD, REFUND = 0, 1, 2, 3, 4 -- + 8: count it when denied

-- A reply begins with a status and the instant: 0 all went well and what is
-- said of each op follows; in every other case nothing was counted.
local DONE, STALE, CLOCK, BROKEN, FOREIGN = 0, 1, 2, 3, 4

-- The call: an instant to use instead of the server's and the deadline, 0 for
-- none, the number of ops, and the ops, which are read on from p.
local args = ARGV[1]
local now, deadline, count, p = up('<I7I7I2', args)
local slack = 1 -- milliseconds that a key outlives its state
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
else
  slack = 3600000
end
if deadline > 0 and now > deadline then return pk('<BI7', STALE, now) end
