-- A program for a run of independent steps, of callers who waited at the same
-- time. Each has an argument as begin.lua reads it, its keys behind those of the
-- steps before it, and a reply of its own.
local args, p, first, next_first = '', 0, 1, 1
local now, deadline, total, own_keys, slack = 0, 0, 0, 0, 1
local clock = call('TIME')
clock = clock[1] * 1000000 + clock[2]

local function decide(argument)
  args, p, first = argument, 19, next_first
  now, deadline, total, own_keys = up('<I7I7I2I2', args)
  next_first = first + own_keys
  if now == 0 then now, slack = clock, 1 else slack = 3600000 end
  if deadline > 0 and now > deadline then return pk('<BI7', STALE, now) end
