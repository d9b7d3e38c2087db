    end
    if reply then
      if type(reply) == 'table' then error(reply) end
      replies[turn], slow = reply, slow + 1
    end
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

-- Where every step has numbers, they follow a status and the instant. ADMITTED: the
-- hits used and the time until it is unused, of each op, and no op has to wait; they
-- are doubles, which are packed in less time. ALL: the wait between the two. QUICK is the status of one step with these three numbers,
-- beside steps with replies. The reader knows what was used before.
local ALL, QUICK, ADMITTED = 7, 8, 9
if slow == 0 and not waited then
  return pk('<BI7' .. string.rep('dd', #KEYS), ADMITTED, now, unpack(numbers, 1, 2 * #KEYS))
end
local function three(from, to)
  local list, n = {}, 0
  for i = from, to do
    list[n + 1], list[n + 2], list[n + 3] = numbers[2 * i - 1], its_waits[i] or 0, numbers[2 * i]
    n = n + 3
  end
  return list, n
end
if slow == 0 then
  local list, n = three(1, #KEYS)
  return pk('<BI7' .. string.rep('I7', n), ALL, now, unpack(list, 1, n))
end
local first = 1
for i = 1, steps do
  local next_one = first + (alike and common_keys or up('<I2', plan, i * 10 + 14))
  if not replies[i] then
    local list, n = three(first, next_one - 1)
    replies[i] = pk('<BI7' .. string.rep('I7', n), QUICK, now, unpack(list, 1, n))
  end
  first = next_one
end
return table.concat(replies)
