-- Ends a program for one call that the fast path has decided.
if decided == total then
  if total == 1 then -- most calls; making a form takes as long as a command
    return pk('<BI7I7I7I7I7', DONE, now, numbers[1], numbers[2], numbers[3], numbers[4])
  end
  return pk('<BI7' .. string.rep('I7', 4 * total), DONE, now, unpack(numbers, 1, 4 * total))
end
