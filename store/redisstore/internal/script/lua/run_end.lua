end

-- An error of the server ends the step that met it, and no other. Steps that are
-- decided by the fixed part of their state return numbers. When all steps of the run
-- do, the reply is the status ALL, the instant, and the numbers of each step.
local ALL = 7
local replies, numbers, quick, done = {}, {}, 0, 0
local function go_on()
  for i = done + 1, steps do
    done = i
    local reply, used, before, wait, reset = decide(i)
    if used then
      local n = 4 * i
      numbers[n - 3], numbers[n - 2], numbers[n - 1], numbers[n] = used, before, wait, reset
      quick = quick + 1
    else
      if type(reply) == 'table' then error(reply) end
      replies[i] = reply
    end
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
if quick == steps then
  return pk('<BI7' .. string.rep('I7I7I7I7', steps), ALL, now, unpack(numbers, 1, 4 * steps))
end
if quick > 0 then
  for i = 1, steps do
    local n = 4 * i
    if not replies[i] then
      replies[i] = pk('<BI7I7I7I7I7', DONE, now, numbers[n - 3], numbers[n - 2], numbers[n - 1], numbers[n])
    end
  end
end
return table.concat(replies)
