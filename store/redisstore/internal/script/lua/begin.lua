-- A program for one call. The argument holds an instant that replaces the
-- server's and the deadline, each 0 for none, then the numbers of keys and of ops,
-- then the ops. p is the position of the next number to read, first the index of
-- the call's first key.
local args, p, first = ARGV[1], 19, 1
local plan, repeats = args, 0 -- fast_begin.lua reads both; only a batch has keys that repeat others
local now, deadline, _, total = up('<I7I7I2I2', args)
local slack = 1 -- milliseconds that a key outlives its state
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
else
  slack = 3600000
end
if deadline > 0 and now > deadline then return pk('<BI7', STALE, now) end
