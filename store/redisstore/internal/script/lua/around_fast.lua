-- Most calls of the program around are a take that holds, in a window or of a place
-- in flight, and is admitted, while no hold ends and no hits leave. This file
-- decides those: the hits that are final stay as they are, and the hold goes behind
-- the others. For all other calls the rest of the program decides.
do
  local kind, ask, flags = up('<BBB', args, p)
  local holds = flags % 4 >= 2 and flags % 32 < 16 and flags % 64 >= 32 -- named, no bans
  local known = kind <= 5 or kind == 10 or kind == 11
  if total == 1 and ask == ENFORCE and holds and known and type(state) ~= 'table' then
    -- The quota and the length, but of a bucket the burst and the hits in the length,
    -- and of a calendar window the begin of the first period.
    local _, n, precision, length, most, id, quota, w, q
    _, _, _, n, precision, length, most, id, _, _, quota, q = up('<BBBI7I2I7I2c12I7I7I7', args, p)
    if kind ~= 10 then w, q = up('<I7', args, q) end
    local at, count, sum, kept, list, final = now, 0, 0, 0, '', ''
    local used, till, head, tail = 0, 0, '', ''
    local fits = n > 0 and now < 4000000000000000 and quota <= MAX and id ~= '\0\0\0\0\0\0\0\0\0\0\0\0'
    if kind == 11 then
      if fits and state then
        local version, code = string.byte(state, 1, 2)
        fits = version == 1 and code == 11
      end
      if fits and state then
        local earliest, last
        _, _, sum, earliest = up('<BBI7I7', state)
        last = up('<I7', state, #state - 24)
        at = math.max(at, last - w)
        count, list, used = (#state - 9) / 25, cut(state, 10), sum
        fits = earliest > at and last <= at + length
      end
      till = at + length
      if fits and n <= 1099511627776 then -- window.MostHeld
        head, tail = pk('<BBI7', 1, 11, sum + n), pk('<I7c12I6', till, id, n)
      else
        fits = false
      end
    elseif fits then
      local held = false
      if state then
        local version, code, of = string.byte(state, 1, 3)
        held = version == 1 and code == 12 and of == kind
        if held then
          local seen
          _, _, _, count, sum, seen, kept = up('<BBBI2I7I7I7', state)
          at = math.max(at, seen)
          local from = 27 + count * 34
          list, final = cut(state, 27, from - 1), cut(state, from)
          if count > 0 then
            fits = up('<I7', state, 27) > at and up('<I7', state, from - 34) <= at + length
          else
            fits = kind == 1
          end
        else
          final = state
          fits = version == 1 and code == kind and kind ~= 1
        end
      end
      local keep = flags % 128 >= 64 and 1 or 0
      local expires = 0 -- when what is final has left, and what holds have cost
      if fits and kind == 1 then
        if final ~= '' then
          local oldest
          used, _, oldest = up('<I7I7I7', final)
          expires = up('<I7', final, #final - 13) + w
          fits = oldest > at - w and (#final - 14) / 14 <= 2 * precision
        end
        used = used + sum
        if keep == 1 then kept = math.max(kept, at + 1) end
        if kept > 0 then expires = math.max(expires, kept - 1 + w) end
      elseif fits and kind == 2 then
        local size = up('<I7', args, q)
        if final ~= '' then
          local width, index, newest, cells
          _, _, width, index, used, newest, cells = up('<BBI7I7I7I7I2', final)
          if not held then at = math.max(at, index * width) end
          local oldest = index
          if cells > 0 then oldest = index - (index - up('<I2', final, 33)) % 65536 end
          fits = newest > 0 and oldest >= floor((at - w + 1) / width)
          expires = (index + 1) * width + w - 1
        end
        used = used + sum
        if keep == 1 then kept = math.max(kept, at + 1) end
        if kept > 0 then expires = math.max(expires, (floor((kept - 1) / size) + 1) * size + w - 1) end
      elseif fits and kind == 3 then
        local mark = at
        if final ~= '' then
          _, _, mark, used = up('<BBI7I7', final)
          if not held then at = math.max(at, mark) end
          fits = mark <= at and at < mark + w
        else
          final = pk('<BBI7I7', 1, 3, at, 0)
          fits = not state
        end
        if keep == 1 then kept = math.max(kept, at + 1) end
        if used > 0 or kept > mark and kept - 1 < mark + w then expires = mark + w end
        used = used + sum
      elseif fits and kind == 4 then
        local e1, e2, e3 = up('<I7I7I7', args, q)
        local mark = at < e1 and e1 or at < e2 and e2 or e3
        local begin = mark == e1 and w or mark == e2 and e1 or e2
        fits = at >= w and at < e3
        if final ~= '' then
          local till_then
          _, _, till_then, used = up('<BBI7I7', final)
          fits = fits and till_then == mark -- else it is over, or the clock was set back
        else
          final = pk('<BBI7I7', 1, 4, mark, 0)
          fits = fits and not state
        end
        if keep == 1 then kept = math.max(kept, at + 1) end
        if used > 0 or kept > begin and kept - 1 < mark then expires = mark end
        used = used + sum
      elseif fits and kind == 10 then
        if final ~= '' then used = up('<I7', final, 3) end
        if keep == 1 then kept = math.max(kept, at + 1) end
        if used > 0 or kept > 0 then expires = NEVER end
        used = used + sum
      elseif fits then
        local per, size, common = w, up('<I7I7', args, q)
        local d, f = 0, 0
        if final ~= '' then
          local booked, part, whole
          _, _, booked, part, whole = up('<BBI7I7I7', final)
          if booked >= at then
            d, f = booked - at, whole > 0 and part / common or 0
            fits = whole == 0 or whole == per * common
          end
          if not held and d == 0 and f == 0 then final = '' end
        end
        if fits and quota > 0 and d <= MAX / per then
          local room = quota * size - f - d * per
          fits = room >= 0 and n <= quota - sum and room >= (n + sum) * size
          if d > 0 or f > 0 then used = floor((d * per + f - 1) / size) + 1 end
          used = math.min(used + sum, quota)
        else
          fits = false
        end
        -- What is kept of each hold is booked at its end.
        local last, s = at, 1
        for i = 1, fits and count + 1 or 0 do
          local ends, kept_too, hits = at + length, keep, n
          if i <= count then ends, _, _, kept_too, hits, s = up('<I7I7c12BI7', list, s) end
          d = last + d - ends
          if d < 0 then d, f = 0, 0 end
          last = ends
          if kept_too == 1 then
            if hits > MAX / size - 1 then
              fits = false
              break
            end
            d, f = d + floor(hits * size / per), f + hits * size % per
            if f >= per then d, f = d + 1, f - per end
          end
        end
        fits = fits and last + d < MAX
        expires = f > 0 and last + d + 1 or last + d
        if keep == 1 then kept = math.max(kept, at + 1) end
      end
      till = math.max(at + length, expires)
      if fits then
        head = pk('<BBBI2I7I7I7', 1, 12, kind, count + 1, sum + n, at, kept)
        tail = pk('<I7I7c12BI7', at + length, at, id, keep, n) .. final
      end
    end
    if fits and n <= quota - used and count < most and at + length < 5000000000000000
      and not (state and string.find(state, id, 1, true)) then
      call('SET', KEYS[first], head .. list .. tail, 'PX', floor((till - now + 999) / 1000) + slack)
      local reset = till == NEVER and NEVER or till - at
      return pk('<BI7I7I7I7I7B', AROUND, now, used + n, used, 0, reset, kind == 11 and 1 or 5)
    end
  end
end
