-- A program for a run of independent steps, of callers who waited at the same
-- time. The first argument holds an instant that replaces the server's, 0 for none,
-- the earliest deadline, and for each step its deadline, its number of keys, and
-- the index in ARGV of its ops, with their number before them. Steps that ask the
-- same share that string. The keys of a step are behind those of the steps before.
-- Each step has a reply of its own.
local plan = ARGV[1]
local now, soonest = up('<I7I7', plan)
local steps = floor((#plan - 14) / 10)
local slack = 1 -- milliseconds that a key outlives its state
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
else
  slack = 3600000
end
local args, p, first, next_first, total, own_keys = '', 3, 1, 1, 0, 0
local alike = #ARGV == 2 and steps > 0 and now <= soonest
if alike then
  args, own_keys = ARGV[2], up('<I2', plan, 22)
  total = up('<I2', args)
end

local function decide(turn)
  local deadline = 0
  if not alike then
    local which
    deadline, own_keys, which = up('<I7I2B', plan, turn * 10 + 5)
    args = ARGV[which]
    total = up('<I2', args)
  end
  p, first, next_first = 3, next_first, next_first + own_keys
  if deadline > 0 and now > deadline then return pk('<BI7', STALE, now) end
