-- Most calls with one bucket take hits that fit, or are denied because the
-- bucket is too full for them. This file decides those. For all others the rest
-- of the program decides.
local state = try('GET', KEYS[first])
if state and #state == 23 then
  if known ~= args then
    _, ask, n, cap, quota, length, common = up('<BBI7I7I7I7I7', args, p)
    known, step = args, floor(length * common / 8) + 1 -- of the window, whatever the quota
  end
  local version, kind, till, part, whole = up('<BBI7I7I7', state)
  local same = whole == 0 or whole == quota * common
  if version == 1 and kind == 5 and same and ask ~= RECORD and n > 0 and n <= cap then
    local d, f = till - now, part / common
    if d < 0 then d, f = 0, 0 end
    local room = cap * length - f - d * quota -- below MAX: a full bucket is
    if d <= MAX / quota and room >= 0 then
      local used = (d > 0 or f > 0) and floor((d * quota + f - 1) / length) + 1 or 0
      local after = room - n * length
      if after < 0 then
        local free = (cap - n) * length - f
        free = free < 0 and -1 or floor(free / quota)
        return pk('<BI7I7I7I7I7', DONE, now, used, used, d - free, f > 0 and d + 1 or d)
      end
      if ask == LOOK then return pk('<BI7I7I7I7I7', DONE, now, used, used, 0, f > 0 and d + 1 or d) end
      local q, r = floor(n * length / quota), n * length % quota
      d, f = d + q, f + r
      if f >= quota then d, f = d + 1, f - quota end
      local lives = f > 0 and d + 1 or d
      call('SETRANGE', KEYS[first], '2', pk('<I7I7I7', now + d, f * common, f > 0 and quota * common or 0))
      local old = part > 0 and till + 1 or till
      local tick = (now + lives) - (now + lives) % step
      if old < tick then
        call('PEXPIRE', KEYS[first], floor((tick + step - now + 999) / 1000) + slack)
      end
      return pk('<BI7I7I7I7I7', DONE, now, used + n, used, 0, lives)
    end
  end
end
