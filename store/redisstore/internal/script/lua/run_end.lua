end

-- An error of the server ends the step that met it, and no other.
local replies, done = {}, 0
local function go_on()
  for i = done + 1, steps do
    done = i
    local reply = decide(i)
    if type(reply) == 'table' then error(reply) end
    replies[i] = reply
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
