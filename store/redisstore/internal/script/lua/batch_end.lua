-- Decides the calls of a batch. An error of the server ends the call that met it, and no
-- other. Calls that the fast path decides have numbers, the others replies, by their index.
-- program.go makes functions of the parts of the program that decide one call: fast of
-- fast_call.lua, and decide of call.lua or call_full.lua with the kinds before it.
--
-- The time of a call grows with the size of its states. After so many bytes the rest is not decided, because the server
-- decides nothing else meanwhile: it is sent again.
local LATER, MOST_READ = 11, 262144 -- script.MostRead
local replies, slow, done, next_first = {}, 0, 0, 1
local function go_on()
  local args, own_keys, total, deadline = ARGV[2], same_keys, same_total, 0
  for turn = done + 1, steps do
    done = turn
    if not alike then
      local which
      deadline, own_keys, which = up('<I7I2B', plan, turn * 10 + 7)
      args = ARGV[which]
      total = up('<I2', args)
    end
    local first = next_first
    next_first = first + own_keys
    local reply
    if deadline > 0 and now > deadline then
      reply = pk('<BI7', STALE, now)
    elseif read > MOST_READ then
      reply = pk('<BI7', LATER, now)
    elseif not fast or not fast(args, first, total, 3) then
      reply = decide(args, first, total, 3)
      if type(reply) == 'table' then error(reply) end
    end
    if reply then replies[turn], slow = reply, slow + 1 end
  end
end
while done < steps do
  local ok, failed = pcall(go_on)
  if not ok then
    if type(failed) == 'table' then failed = failed.err end
    failed = tostring(failed)
    replies[done], slow = pk('<BI7I4I2', FAILED, now, 1, #failed) .. failed, slow + 1
  end
end
if slow == steps then return table.concat(replies) end -- as always without a fast path
