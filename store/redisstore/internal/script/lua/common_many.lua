-- Decides a step with several ops of these kinds, each of which is either a look or counted
-- only if all ops admit it. It writes when all ops are decided. Lua returns some 8,000
-- numbers at most.
local all_fit, waiting, decided, next_op, some = true, false, 0, p, 0
if total <= 1000 then
  for i = 1, total do
    local k = first + i - 1
    local state = all[k] or try('GET', KEYS[k])
    if type(state) == 'table' then break end -- an error
    local kind, ask, n = up('<BBI7', args, next_op)
    local used, wait, reset, bytes, from, ms, lasts
    if kind == 1 then
      used, wait, reset, bytes, from, ms, lasts = common_sliding(state, n, args, next_op + 9)
      next_op = next_op + 30
    elseif kind == 3 then
      used, wait, reset, bytes, from, ms, lasts = common_fixed(state, n, args, next_op + 9)
      next_op = next_op + 23
    else
      used, wait, reset, bytes, from, ms, lasts = common_bucket(state, n, args, next_op + 9)
      next_op = next_op + 37
    end
    if not used then break end
    numbers[2 * k - 1], numbers[2 * k] = used, reset
    if wait ~= 0 then
      its_waits[k], waiting = wait, true
      if ask ~= LOOK then all_fit = false end
    elseif ask ~= LOOK then
      writes[some + 1], writes[some + 2], writes[some + 3], writes[some + 4], writes[some + 5], writes[some + 6] =
        k, bytes or false, from or false, ms or false, used + n, lasts
      some = some + 6
    end
    decided = i
  end
end
if not all_fit then some = 0 end
for i = 2, some, 6 do -- hits that fit, but not into what common_sliding.lua can write
  if not writes[i] then decided = 0 end
end
if decided == total then
  for i = 1, some, 6 do
    local k, bytes, from, ms, used, lasts = unpack(writes, i, i + 5)
    if from then
      call('SETRANGE', KEYS[k], from, bytes)
      if ms then call('PEXPIRE', KEYS[k], ms) end
    else
      call('SET', KEYS[k], bytes, 'PX', ms)
    end
    numbers[2 * k - 1], numbers[2 * k] = used, lasts
  end
