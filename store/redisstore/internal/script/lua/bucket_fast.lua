-- Most calls with one bucket take hits that fit, or are denied because the
-- bucket is too full for them. This file decides those, and the first of a key. For all others the rest
-- of the program decides.
if state and #state == 23 then
  local kind, till, part, whole = up('<I2I7I7I7', state) -- the version, and 256 times the kind
  local same = whole == 0 or whole == its_whole
  if kind == 1281 and same and its_ask ~= RECORD and its_n > 0 and its_n <= its_cap then
    local d, f = till - now, part / its_common
    if d < 0 then d, f = 0, 0 end
    local booked = d * its_quota + f
    local room = its_full - f - d * its_quota -- below MAX: a full bucket is
    if d <= its_most and room >= 0 then
      local used = booked > 0 and (booked - 1 - (booked - 1) % its_length) / its_length + 1 or 0
      if room < its_cost then
        local free = (its_cap - its_n) * its_length - f
        free = free < 0 and -1 or (free - free % its_quota) / its_quota
        return decided(used, used, d - free, f > 0 and d + 1 or d)
      end
      if its_ask == LOOK then
        return decided(used, used, 0, f > 0 and d + 1 or d)
      end
      d, f = d + its_time, f + its_part
      if f >= its_quota then d, f = d + 1, f - its_quota end
      local lives = f > 0 and d + 1 or d
      call('SETRANGE', key, '2', pk('<I7I7I7', now + d, f * its_common, f > 0 and its_whole or 0))
      local old, ends = part > 0 and till + 1 or till, now + lives
      local tick = ends - ends % its_step
      if old < tick then
        local ms = tick + its_step - now + 999
        call('PEXPIRE', key, (ms - ms % 1000) / 1000 + slack)
      end
      return decided(used + its_n, used, 0, lives)
    end
  end
elseif state == false and its_ask ~= LOOK and its_ask ~= RECORD and its_n <= its_cap then
  local lives = its_part > 0 and its_time + 1 or its_time
  local ends = now + lives
  local v = pk('<I2I7I7I7', 1281, now + its_time, its_part * its_common, its_part > 0 and its_whole or 0)
  local ms = ends - ends % its_step + its_step - now + 999
  call('SET', key, v, 'PX', (ms - ms % 1000) / 1000 + slack)
  return decided(its_n, 0, 0, lives)
end
