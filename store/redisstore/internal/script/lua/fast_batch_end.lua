-- Where every call has numbers, they follow a status and the instant of all calls, as
-- doubles, which are packed in less time.
local TOGETHER = 7
if slow == 0 then
  return pk('<BI7' .. string.rep('d', 4 * #KEYS), TOGETHER, now, unpack(numbers, 1, 4 * #KEYS))
end
local first = 1
for i = 1, steps do
  local next_one = first + (alike and same_keys or up('<I2', plan, i * 10 + 14))
  if not replies[i] then
    local form = '<BI7' .. string.rep('I7', 4 * (next_one - first))
    replies[i] = pk(form, DONE, now, unpack(numbers, 4 * first - 3, 4 * next_one - 4))
  end
  first = next_one
end
return table.concat(replies)
