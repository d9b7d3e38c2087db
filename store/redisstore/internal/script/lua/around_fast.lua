-- Most calls of the program around are a take that holds, in a sliding window or of
-- a place in flight, and is admitted, while nothing ends or leaves. This file
-- decides those. For all others the rest of the program decides.
local AROUND = 6 -- the status of a reply with holds and bans

local state = try('GET', KEYS[first])
do
  local kind, ask, flags = up('<BBB', args, p)
  local holds = flags % 4 >= 2 and flags % 32 < 16 and flags % 64 >= 32 -- named, no bans
  if total == 1 and ask == ENFORCE and holds and (kind == 1 or kind == 11) and type(state) ~= 'table' then
    local _, n, precision, length, most, id, quota, w
    _, _, _, n, precision, length, most, id, _, _, quota, w = up('<BBBI7I2I7I2c12I7I7I7I7', args, p)
    local till
    local at, count, used, sum, s, head, base = now, 0, 0, 0, '', '', ''
    local fits = n > 0 and now < 4000000000000000 and id ~= '\0\0\0\0\0\0\0\0\0\0\0\0'
    if kind == 11 then
      if fits and state then
        local version, code = string.byte(state, 1, 2)
        fits = version == 1 and code == 11
      end
      if fits and state then
        local earliest, last
        _, _, sum, earliest = up('<BBI7I7', state)
        last = up('<I7', state, #state - 24)
        at = math.max(at, last - length)
        count, s, used = (#state - 9) / 25, cut(state, 10), sum
        fits = earliest > at and last <= at + length
      end
      till = at + length
      if n <= 1099511627776 then -- window.MostHeld
        head, base = pk('<BBI7', 1, 11, sum + n), pk('<I7c12I6', till, id, n)
      else
        fits = false
      end
    else
      local kept, final, newest = 0, '', 0
      if fits and state then
        local version, code, of = string.byte(state, 1, 3)
        fits = version == 1 and code == 12 and of == 1
        if fits then
          local seen
          _, _, _, count, sum, seen, kept = up('<BBBI2I7I7I7', state)
          at = math.max(at, seen)
          local from = 27 + count * 34
          if count > 0 then
            fits = up('<I7', state, 27) > at and up('<I7', state, from - 34) <= at + length
          end
          if from <= #state then
            local hits, oldest
            hits, _, oldest = up('<I7I7I7', state, from)
            newest = up('<I7', state, #state - 13) + w
            used, final = hits, cut(state, from)
            fits = fits and oldest > at - w and (#final - 14) / 14 <= 2 * precision
          end
          used, s = used + sum, cut(state, 27, from - 1)
        end
      end
      local keep = flags % 128 >= 64 and 1 or 0
      if keep == 1 then kept = math.max(kept, at + 1) end
      till = math.max(at + length, newest, kept > 0 and kept - 1 + w or 0)
      if fits and n <= quota - used then
        head = pk('<BBBI2I7I7I7', 1, 12, 1, count + 1, sum + n, at, kept)
        base = pk('<I7I7c12BI7', at + length, at, id, keep, n) .. final
      end
    end
    if fits and n <= quota - used and count < most and not (state and string.find(state, id, 1, true)) then
      call('SET', KEYS[first], head .. s .. base, 'PX', floor((till - now + 999) / 1000) + slack)
      return pk('<BI7I7I7I7I7B', AROUND, now, used + n, used, 0, till - at, kind == 1 and 5 or 1)
    end
  end
end
