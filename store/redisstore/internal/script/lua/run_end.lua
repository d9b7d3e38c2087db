end

-- An error of the server ends the call that met it, and no other.
local replies, done, next_first = {}, 0, 1
local function go_on()
  local args, own_keys, total, deadline = ARGV[2], common_keys, common_total, 0
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
    else
      reply = decide(args, first, total)
      if type(reply) == 'table' then error(reply) end
    end
    replies[turn] = reply
  end
end
while done < steps do
  local ok, failed = pcall(go_on)
  if not ok then
    if type(failed) == 'table' then failed = failed.err end
    failed = tostring(failed)
    replies[done] = pk('<BI7I4I2', FAILED, now, 1, #failed) .. failed
  end
end
return table.concat(replies)
