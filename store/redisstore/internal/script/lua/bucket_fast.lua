-- Most calls with one bucket take hits that fit, or are denied because the
-- bucket is too full for them. This file decides those. For all others the rest
-- of the program decides.
if state and #state == 23 then
  local version, kind, till, part, whole = up('<BBI7I7I7', state)
  local same = whole == 0 or whole == its_quota * its_common
  if version == 1 and kind == 5 and same and its_ask ~= RECORD and its_n > 0 and its_n <= its_cap then
    local d, f = till - now, part / its_common
    if d < 0 then d, f = 0, 0 end
    local room = its_cap * its_length - f - d * its_quota -- below MAX: a full bucket is
    if d <= MAX / its_quota and room >= 0 then
      local used = (d > 0 or f > 0) and floor((d * its_quota + f - 1) / its_length) + 1 or 0
      local after = room - its_n * its_length
      if after < 0 then
        local free = (its_cap - its_n) * its_length - f
        free = free < 0 and -1 or floor(free / its_quota)
        return decided(used, used, d - free, f > 0 and d + 1 or d)
      end
      if its_ask == LOOK then
        return decided(used, used, 0, f > 0 and d + 1 or d)
      end
      local q, r = floor(its_n * its_length / its_quota), its_n * its_length % its_quota
      d, f = d + q, f + r
      if f >= its_quota then d, f = d + 1, f - its_quota end
      local lives = f > 0 and d + 1 or d
      call('SETRANGE', KEYS[first], '2', pk('<I7I7I7', now + d, f * its_common, f > 0 and its_quota * its_common or 0))
      local old = part > 0 and till + 1 or till
      local tick = (now + lives) - (now + lives) % its_step
      if old < tick then
        call('PEXPIRE', KEYS[first], floor((tick + its_step - now + 999) / 1000) + slack)
      end
      return decided(used + its_n, used, 0, lives)
    end
  end
end
