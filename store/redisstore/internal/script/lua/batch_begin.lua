-- A program for a batch of independent calls, of callers who waited at the same
-- time. The first argument, the plan, holds an instant that replaces the server's, 0 for
-- none, the earliest deadline, and how many keys repeat earlier ones; for each call its
-- deadline, its number of keys, and the index in ARGV of its ops, with their number
-- before them; and the indexes in KEYS of the keys that repeat earlier ones. Calls
-- with the same request share the string of their ops. The keys of a call follow
-- those of the calls before. Each call has its own reply.
local plan = ARGV[1]
local now, soonest, repeats = up('<I7I7I2', plan)
local steps = floor((#plan - 16 - 2 * repeats) / 10)
local slack = 1 -- milliseconds that a key outlives its state
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
else
  slack = 3600000
end

-- Calls that are all the same and not late are read once.
local alike = #ARGV == 2 and steps > 0 and now <= soonest
local same_keys, same_total
if alike then same_keys, same_total = up('<I2', plan, 24), up('<I2', ARGV[2]) end

local fast -- decides a call on the fast path, if the program has it; see fast_call.lua
