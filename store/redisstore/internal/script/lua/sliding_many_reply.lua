  local list = {}
  for i = 1, total do
    local n, used = 4 * i, numbers[2 * i - 1]
    local counted = all_fit and its_asks[i] ~= LOOK and its_ns[i] or 0
    list[n - 3], list[n - 2], list[n - 1], list[n] = used, used - counted, waiting and its_waits[i] or 0, numbers[2 * i]
  end
  return pk('<BI7' .. string.rep('I7I7I7I7', total), DONE, now, unpack(list, 1, 4 * total))
end
