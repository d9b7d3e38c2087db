  -- As run_fast_end.lua answers for a run.
  if not waiting then return pk('<BI7' .. string.rep('dd', total), 9, now, unpack(numbers, 1, 2 * total)) end
  local list = {}
  for i = 1, total do
    list[3 * i - 2], list[3 * i - 1], list[3 * i] = numbers[2 * i - 1], its_waits[i] or 0, numbers[2 * i]
  end
  return pk('<BI7' .. string.rep('I7', 3 * total), 7, now, unpack(list, 1, 3 * total))
end
