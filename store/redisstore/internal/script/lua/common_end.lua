  return pk('<BI7' .. string.rep('I7', 4 * total), DONE, now, unpack(numbers, 1, 4 * total))
end
