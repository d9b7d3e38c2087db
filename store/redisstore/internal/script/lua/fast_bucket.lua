-- See package script. A bucket's key, too, lives up to an eighth of its window longer than
-- its state. What is booked, f of it, is in parts of a microsecond: quota of them.
local function fast_bucket(state, n, cap, quota, length, divisor)
  if n == 0 or n > cap then return end
  local whole, cost, step = quota * divisor, n * length, length * divisor
  step = (step - step % 8) / 8 + 1
  local part = cost % quota
  local time = (cost - part) / quota
  local d, f, ends, used, reset = 0, 0, nil, 0, 0
  if state then
    if #state ~= 23 then return end
    local kind, till, numerator, denominator = up('<I2I7I7I7', state)
    if kind ~= 1281 or denominator ~= 0 and denominator ~= whole then return end
    d, f, ends = till - now, numerator / divisor, numerator > 0 and till + 1 or till
    if d < 0 then d, f = 0, 0 end
    local booked = d * quota + f
    local room = cap * length - booked
    if d > MAX / quota or room < 0 then return end
    used = booked > 0 and (booked - 1 - (booked - 1) % length) / length + 1 or 0
    reset = f > 0 and d + 1 or d
    if room < cost then
      local free = (cap - n) * length - f
      free = free < 0 and -1 or (free - free % quota) / quota
      return used, d - free, reset
    end
  end
  d, f = d + time, f + part
  if f >= quota then d, f = d + 1, f - quota end
  local lasts = f > 0 and d + 1 or d
  local bytes = pk('<I7I7I7', now + d, f * divisor, f > 0 and whole or 0)
  local tick = now + lasts
  tick = tick - tick % step
  local ms = tick + step - now + 999
  ms = (ms - ms % 1000) / 1000 + slack
  if not ends then return used, 0, reset, pk('<I2', 1281) .. bytes, nil, ms, lasts end
  return used, 0, reset, bytes, '2', ends < tick and ms or nil, lasts
end
