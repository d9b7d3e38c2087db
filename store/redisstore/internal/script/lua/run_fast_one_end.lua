until true
if its_used then
  numbers[2 * first - 1], numbers[2 * first] = its_used, its_reset
  if its_wait ~= 0 then its_waits[first], waited = its_wait, true end
else
  reply = decide(args, first, total, state)
end
