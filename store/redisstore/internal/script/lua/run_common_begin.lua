end

-- An error of the server ends the call that met it, and no other. Calls that
-- common_call.lua decides have numbers; the others have replies, by their index.
local numbers, replies, slow, done, next_first = {}, {}, 0, 0, 1
local known
local asked = {}
local function go_on()
  local call, KEYS, all, numbers, now = call, KEYS, all, numbers, now
  local args, own_keys, total, deadline = ARGV[2], common_keys, common_total, 0
  for turn = done + 1, steps do
    done = turn
    if not alike then
      local which
      deadline, own_keys, which = up('<I7I2B', plan, turn * 10 + 7)
      args = ARGV[which]
      total = up('<I2', args)
    end
    local first, p = next_first, 3
    next_first = first + own_keys
    local reply
    if deadline > 0 and now > deadline then
      reply = pk('<BI7', STALE, now)
    else
