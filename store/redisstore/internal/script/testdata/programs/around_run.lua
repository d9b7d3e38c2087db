local up, pk, call, try, KEYS, ARGV = struct.unpack, struct.pack, redis.call, redis.pcall, KEYS, ARGV
local MAX = 9007199254740991
local NEVER = 9007199254740992
local LOOK, RECORD = 0, 3
local STALE = 1
local cut, floor, type = string.sub, math.floor, type
local ENFORCE, SHADOW, REFUND = 1, 2, 4
local DONE, CLOCK, BROKEN, FOREIGN, FAILED = 0, 2, 3, 4, 5
local plan = ARGV[1]
local now, soonest, repeats = up('<I7I7I2', plan)
local steps = floor((#plan - 16 - 2 * repeats) / 10)
local slack = 1
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
else
  slack = 3600000
end
local alike = #ARGV == 2 and steps > 0 and now <= soonest
local common_keys, common_total
if alike then common_keys, common_total = up('<I2', plan, 24), up('<I2', ARGV[2]) end
local function decide(args, first, total)
  local p = 3
local AROUND = 6
local state = try('GET', KEYS[first])
do
  local kind, ask, flags = up('<BBB', args, p)
  local holds = flags % 4 >= 2 and flags % 32 < 16 and flags % 64 >= 32
  local known = kind <= 5 or kind == 10 or kind == 11
  if total == 1 and ask == ENFORCE and holds and known and type(state) ~= 'table' then
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
      if fits and n <= 1099511627776 then
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
      local expires = 0
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
          fits = fits and till_then == mark
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
local kinds = {}
local off = false
local function changes(f)
  return function(o, ...)
    local same = f(o, ...)
    if not same then o.raw = nil end
    return same
  end
end
local function keep_raw(row)
  local open, save = row.open, row.save
  row.open = function(v, i, at)
    local o = open(v, i, at)
    o.raw = i == 1 and v
    return o
  end
  row.save = function(o)
    local s, till = save(o)
    if o.raw then return o.raw, till or 0 end
    return s, till
  end
  row.add, row.sub, row.sub_at = changes(row.add), changes(row.sub), changes(row.sub_at)
end
setmetatable(kinds, {__index = function(rows, code)
if code >= 1 and code <= 1 then
local function look_sliding(o, n)
  local k, fill, group, quota = o.k, o.fill, o.group, o.quota
  local used = k > 0 and (k - 1) * group + fill or 0
  if used > MAX then used = MAX end
  if n == 0 then return used, 0 end
  if n > quota then return used, NEVER end
  local room, leave = quota - n - fill, k
  if room >= 0 then leave = k - 1 - floor(room / group) end
  if leave <= 0 then return used, 0 end
  if leave >= k then return used, o.newest + o.w end
  return used, up('<I7', o.v, o.s + (leave - 1) * 7) + o.w
end
local function regroup(o)
  local v, s, k, group, size = o.v, o.s, o.k, o.group, o.size
  local past, step = o.fill % size, group % size
  for _ = 2, k do past = past >= size - step and past - (size - step) or past + step end
  local whole, room = o.quota % size, o.quota
  past = past >= whole and past - whole or past + (size - whole)
  local kept, excess = {}, o.excess
  for i = k, 1, -1 do
    local hits = i == k and o.fill or group
    local a = math.min(hits, past)
    local b = math.min(hits - a, room)
    past, room, kept[i], excess = past - a, room - b, a + b, math.min(excess + (hits - a - b), MAX)
  end
  o.excess = excess
  local dates, filled = {}, 0
  for i = 1, k do
    local hits, date = kept[i], i == k and o.newest or up('<I7', v, s + (i - 1) * 7)
    while hits > 0 do
      if filled == 0 then dates[#dates + 1] = date end
      dates[#dates] = date
      local part = math.min(hits, size - filled)
      filled, hits = (filled + part) % size, hits - part
    end
  end
  k = #dates
  o.k, o.fill, o.newest = k, filled == 0 and size or filled, dates[k] or 0
  for i = 1, k do dates[i] = pk('<I7', dates[i]) end
  o.v, o.s = table.concat(dates), 1
end
local function add_sliding(o, n)
  if o.k > 0 and o.group ~= o.size then regroup(o) end
  local size, k, newest, added = o.size, o.k, o.newest, 0
  if k > 0 then
    local part = size - o.fill
    if part > n then part = n end
    if part > 0 then
      o.fill, newest, n = o.fill + part, o.now, n - part
    end
  end
  if n > 0 then
    added = floor((n - 1) / size) + 1
    o.fill = n - (added - 1) * size
  end
  local most = 1 - floor((o.fill - o.quota) / size)
  local old = 0
  if added > most - k then
    local drop = added - (most - k)
    o.excess, old, o.k = math.min(o.excess + drop * size, MAX), math.min(drop, k), most
  else
    o.k = k + added
  end
  o.group = size
  if added == 0 then
    o.newest, o.s = newest, o.s + old * 7
    return
  end
  local kept, tail = 0, ''
  if k > old then kept, tail = k - old, pk('<I7', newest) end
  if o.k - 1 > kept then tail = tail .. string.rep(pk('<I7', o.now), o.k - 1 - kept) end
  o.newest, o.s, o.tail = o.now, o.s + old * 7, tail
end
local function save_sliding(o)
  local k, s, newest, tail = o.k, o.s, o.newest, o.tail
  if k <= 0 then return nil end
  local old = (k - 1) * 7 - #tail
  local oldest = newest
  if k > 1 then oldest = old > 0 and up('<I7', o.v, s) or up('<I7', tail) end
  local v = pk('<BBI2I7I7I7I7I7', 1, 1, k, newest, oldest, o.fill, o.group, o.excess)
  v = old > 0 and v .. cut(o.v, s, s + old - 1) .. tail or v .. tail
  o.v, o.s, o.tail = v, 40, ''
  local step = floor(o.w / 8) + 1
  return v, (floor(newest / step) + 1) * step + o.w
end
local function expires_sliding(o)
  return o.k > 0 and o.newest + o.w or 0
end
local function open_sliding(v, i, at)
  local quota, w, size
  quota, w, size, p = up('<I7I7I7', args, p)
  local k, newest, fill, group, excess, s = 0, 0, 0, size, 0, 1
  if v then
    local oldest
    k, newest, oldest, fill, group, excess, s = up('<I2I7I7I7I7I7', v, i + 2)
    if newest > at then at = newest end
    local edge = at - w
    if newest <= edge then
      k, excess = 0, 0
    elseif oldest <= edge then
      local lo, mid, hi = 1, 2, k
      while hi - lo > 1 do
        if up('<I7', v, s + (mid - 1) * 7) <= edge then lo = mid else hi = mid end
        mid = floor((lo + hi) / 2)
      end
      s, k, excess = s + lo * 7, k - lo, 0
    end
  end
  return {
    now = at, quota = quota, w = w, size = size, v = v, s = s, tail = '',
    k = k, newest = newest, fill = fill, group = group, excess = excess,
  }
end
kinds[1] = {open = open_sliding, look = look_sliding, add = add_sliding, save = save_sliding, expires = expires_sliding}
kinds[1].sub = function(o, n)
  if n > MAX then
    o.k = 0
    return
  end
  local eaten = math.min(n, o.excess)
  o.excess, n = o.excess - eaten, n - eaten
  local k, group = o.k, o.group
  if k == 0 or n >= (k - 1) * group + o.fill then
    o.k = 0
  elseif n < o.fill then
    o.fill = o.fill - n
  else
    n = n - o.fill
    k = k - 1 - floor(n / group)
    o.k, o.fill, o.newest = k, group - n % group, up('<I7', o.v, o.s + (k - 1) * 7)
  end
end
local function pair(o, i)
  return up('<I7I7', o.v, o.s + i * 14 - 14)
end
local function clear_dated(o)
  o.v, o.s, o.n, o.hits, o.excess = '', 1, 0, 0, 0
end
local function splice(o, i, gone, pairs)
  local s = o.s + (i - 1) * 14
  o.v = cut(o.v, o.s, s - 1) .. pairs .. cut(o.v, s + gone * 14, o.s + o.n * 14 - 1)
  o.s, o.n = 1, #o.v / 14
  if o.n == 0 then clear_dated(o) end
end
local function inside_dated(o, t)
  local used, edge, s = o.hits, t - o.w, o.s
  for i = 1, o.n do
    local date, hits
    date, hits, s = up('<I7I7', o.v, s)
    if date > edge then return i - 1, used end
    used = used - hits
  end
  return o.n, 0
end
local function expire_dated(o)
  local gone, used = inside_dated(o, o.now)
  if gone == o.n then
    clear_dated(o)
  elseif gone > 0 then
    o.s, o.n, o.hits, o.excess = o.s + gone * 14, o.n - gone, used, 0
  end
end
local function book_dated(o, at, _, n)
  expire_dated(o)
  if at + o.w <= o.now then return end
  n = math.min(n, MAX - o.hits)
  o.hits = o.hits + n
  local i, date, hits = o.n, nil, 0
  while i > 0 do
    date, hits = pair(o, i)
    if date <= at then break end
    i = i - 1
  end
  if i > 0 and date == at then
    splice(o, i, 1, pk('<I7I7', at, hits + n))
  else
    splice(o, i + 1, 0, pk('<I7I7', at, n))
  end
  while o.n > 1 do
    _, hits = pair(o, 1)
    if o.hits - hits < o.quota then return end
    o.hits, o.excess = o.hits - hits, math.min(o.excess + hits, MAX)
    o.s, o.n = o.s + 14, o.n - 1
  end
end
local function sub_dated(o, n)
  expire_dated(o)
  if o.n == 0 then return end
  local eaten = math.min(n, o.excess)
  o.excess, n = o.excess - eaten, math.min(n - eaten, o.hits)
  o.hits = o.hits - n
  while n > 0 do
    local date, hits = pair(o, o.n)
    if hits > n then
      splice(o, o.n, 1, pk('<I7I7', date, hits - n))
      return
    end
    o.n, n = o.n - 1, n - hits
  end
  if o.n == 0 then clear_dated(o) end
end
local function sub_at_dated(o, at, n)
  expire_dated(o)
  for i = 1, o.n do
    local date, hits = pair(o, i)
    if date == at then
      n = math.min(n, hits)
      o.hits = o.hits - n
      splice(o, i, 1, hits > n and pk('<I7I7', date, hits - n) or '')
      return
    end
  end
end
local function tighten(h)
  local o = h.base
  expire_dated(o)
  if o.n <= 2 * h.precision then return end
  local ats, s = {}, 1
  for i = 1, h.count do
    local _
    _, ats[i], _, _, _, s = up('<I7I7c12BI7', h.list, s)
  end
  local function between(from, to)
    for i = 1, #ats do
      if ats[i] >= from and ats[i] < to then return true end
    end
    return false
  end
  local out, date, hits = {}, pair(o, 1)
  for i = 2, o.n do
    local d, x = pair(o, i)
    if x <= o.size - hits and not between(date, d) then
      date, hits = d, hits + x
    else
      out[#out + 1] = pk('<I7I7', date, hits)
      date, hits = d, x
    end
  end
  out[#out + 1] = pk('<I7I7', date, hits)
  o.v, o.s, o.n = table.concat(out), 1, #out
end
local function leaves_dated(o, at)
  return at + o.w
end
local function adopt_dated(o)
  local b = {now = o.now, quota = o.quota, w = o.w, size = o.size, v = '', s = 1, n = 0, hits = 0, excess = o.excess}
  local out, last, filled = {}, nil, 0
  for i = 1, o.k do
    local date, n = o.newest, o.fill
    if i < o.k then date, n = up('<I7', o.v, o.s + i * 7 - 7), o.group end
    if date ~= last and last then
      out[#out + 1] = pk('<I7I7', last, filled)
      filled = 0
    end
    last, filled = date, filled + n
  end
  if last then out[#out + 1] = pk('<I7I7', last, filled) end
  b.v, b.n = table.concat(out), #out
  b.hits = o.k > 0 and math.min((o.k - 1) * o.group + o.fill, MAX) or 0
  return b
end
kinds[1].sub_at = function(o, at, n)
  if o.now - o.w >= at or o.k == 0 then return true end
  local kept, gone = {}, 0
  for i = o.k, 1, -1 do
    local date = i == o.k and o.newest or up('<I7', o.v, o.s + i * 7 - 7)
    if date == at and gone < n then
      gone = gone + 1
    else
      table.insert(kept, 1, date)
    end
  end
  if gone == 0 then return true end
  o.k = #kept
  if o.k == 0 then return end
  o.newest = kept[o.k]
  for i = 1, o.k - 1 do kept[i] = pk('<I7', kept[i]) end
  kept[o.k] = nil
  o.v, o.s = table.concat(kept), 1
end
keep_raw(kinds[1])
kinds[1].aged = {
  open = function(v, at)
    local o = {now = at, v = '', s = 1, n = 0, hits = 0, excess = 0}
    o.quota, o.w, o.size, p = up('<I7I7I7', args, p)
    if v then
      o.hits, o.excess = up('<I7I7', v)
      o.v, o.s, o.n = v, 15, (#v - 14) / 14
    end
    return o
  end,
  adopt = adopt_dated,
  dated = true,
  used = function(o, t)
    local _, used = inside_dated(o, t)
    return used
  end,
  leaving = function(o, t)
    local i = inside_dated(o, t)
    local s = o.s + i * 14
    return function()
      if i == o.n then return nil end
      local date, hits
      date, hits, s = up('<I7I7', o.v, s)
      i = i + 1
      return date + o.w, hits
    end
  end,
  begin = function() end,
  add = function(o, n) book_dated(o, o.now, nil, n) end,
  sub = sub_dated,
  sub_at = sub_at_dated,
  empty = clear_dated,
  book = book_dated,
  tighten = tighten,
  leaves = leaves_dated,
  lasts = leaves_dated,
  expires = function(o) return o.n > 0 and pair(o, o.n) + o.w or 0 end,
  trim = function() end,
  save = function(o)
    return o.n > 0 and pk('<I7I7', o.hits, o.excess) .. cut(o.v, o.s, o.s + o.n * 14 - 1) or nil
  end,
}
elseif code >= 2 and code <= 2 then
local function estimate(o)
  local sum, width, from = o.sum, o.width, o.now - o.w + 1
  local oldest, hits = o.index, o.cur
  if o.n > 0 then
    local e, x = up('<I2I7', o.v, o.s)
    oldest, hits = oldest - (oldest - e) % 65536, x
  end
  local inside = (oldest + 1) * width - from
  if sum == 0 or inside >= width then return sum end
  inside = inside * 1024
  local share = floor((inside - math.fmod(inside, width)) / width + 0.5)
  if hits < 1099511627776 then return sum - hits + floor(hits * share / 1024) end
  return sum - hits + floor(hits / 1024) * share
end
local function look_cells(o, n)
  local quota, left = o.quota, o.sum
  if quota > MAX then return estimate(o), 0 end
  if n == 0 or left <= quota - n then return left, 0 end
  if n > quota then return left, NEVER end
  local v, s, width = o.v, o.s, o.width
  for _ = 1, o.n do
    local e, x
    e, x, s = up('<I2I7', v, s)
    left = left - x
    if left <= quota - n then
      return o.sum, (o.index - (o.index - e) % 65536 + 1) * width + o.w - 1
    end
  end
  return o.sum, (o.index + 1) * width + o.w - 1
end
local function expire_cells(o)
  local edge = floor((o.now - o.w + 1) / o.width)
  if o.index < edge then
    o.sum, o.cur, o.n = 0, 0, 0
    return
  end
  local v, s, index = o.v, o.s, o.index
  while o.n > 0 do
    local e, x, q = up('<I2I7', v, s)
    if index - (index - e) % 65536 >= edge then break end
    o.sum, o.n, s = o.sum - x, o.n - 1, q
  end
  o.s = s
end
local function recut(o)
  local to, v = o.want, o.v
  local width, s
  width, o.index, o.sum, o.cur, o.n, s = up('<I7I7I7I7I2', v, o.i + 2)
  local last = floor(((o.index + 1) * width - 1) / to)
  local cells, sum, prev, held = {}, 0, nil, 0
  for i = 1, o.n + 1 do
    local index, x = o.index, o.cur
    if i <= o.n then
      index, x, s = up('<I2I7', v, s)
      index = o.index - (o.index - index) % 65536
    end
    index = floor(((index + 1) * width - 1) / to)
    if index >= last - 10000 then
      if index ~= prev and held > 0 then
        cells[#cells + 1] = pk('<I2I7', prev % 65536, held)
        held = 0
      end
      prev, held, sum = index, held + x, sum + x
    end
  end
  o.width, o.index, o.sum, o.cur = to, last, sum, held
  o.v, o.s, o.n = table.concat(cells), 1, #cells
end
local function add_cells(o, n)
  if o.width ~= o.want then
    recut(o)
    expire_cells(o)
  end
  local index = floor(o.now / o.width)
  if n > MAX - o.sum then n = MAX - o.sum end
  if o.sum > 0 and index <= o.index then
    o.cur = o.cur + n
  else
    if o.cur > 0 then
      local more = pk('<I2I7', o.index % 65536, o.cur)
      o.v, o.s = o.n > 0 and cut(o.v, o.s, o.s + o.n * 9 - 1) .. more or more, 1
      o.n = o.n + 1
    end
    o.index, o.cur = index, n
  end
  o.sum = o.sum + n
end
local function expires_cells(o)
  if o.sum == 0 then return 0 end
  local last = o.index
  if o.cur == 0 then
    local e = up('<I2', o.v, o.s + (o.n - 1) * 9)
    last = last - (last - e) % 65536
  end
  return (last + 1) * o.width + o.w - 1
end
local function save_cells(o)
  if o.sum == 0 then return nil end
  local v = o.n > 0 and cut(o.v, o.s, o.s + o.n * 9 - 1) or ''
  v = pk('<BBI7I7I7I7I2', 1, 2, o.width, o.index, o.sum, o.cur, o.n) .. v
  o.v, o.i, o.s = v, 1, 33
  return v, expires_cells(o)
end
local function open_cells(v, i, at)
  local o = {
    now = at, quota = 0, w = 0, want = 0, v = v, i = i, s = 1,
    width = 0, index = 0, sum = 0, cur = 0, n = 0,
  }
  o.quota, o.w, o.want, p = up('<I7I7I7', args, p)
  o.width = o.want
  if v then
    o.width, o.index, o.sum, o.cur, o.n, o.s = up('<I7I7I7I7I2', v, i + 2)
    local start = o.index * o.width
    if start > at then o.now = start end
    expire_cells(o)
  end
  return o
end
kinds[2] = {open = open_cells, look = look_cells, add = add_cells, save = save_cells, expires = expires_cells}
kinds[2].sub = function(o, n)
  if n >= o.sum then
    o.sum = 0
    return
  end
  o.sum = o.sum - n
  local part = math.min(n, o.cur)
  o.cur, n = o.cur - part, n - part
  while n > 0 do
    local at = o.s + (o.n - 1) * 9
    local e, x = up('<I2I7', o.v, at)
    if x > n then
      o.v, o.s = cut(o.v, o.s, at - 1) .. pk('<I2I7', e, x - n), 1
      return
    end
    n, o.n = n - x, o.n - 1
  end
end
local function age(v, at)
  local o = open_cells(v, 1, 0)
  if v then
    o.width, o.index, o.sum, o.cur, o.n, o.s = up('<I7I7I7I7I2', v, 3)
  end
  o.now, o.raw = at, v
  if v then expire_cells(o) end
  return o
end
local function leaves_cells(o, at)
  return (floor(at / o.want) + 1) * o.want + o.w - 1
end
local function each_cell(o, s)
  local e, x
  e, x, s = up('<I2I7', o.v, s)
  return o.index - (o.index - e) % 65536, x, s
end
local function book_cells(o, at, _, n)
  if leaves_cells(o, at) <= o.now then return true end
  if o.width ~= o.want then
    recut(o)
    expire_cells(o)
  end
  n = math.min(n, MAX - o.sum)
  local index = floor(at / o.want)
  if o.sum == 0 then
    o.index, o.sum, o.cur, o.n = index, n, n, 0
    return
  end
  o.sum = o.sum + n
  if index == o.index then
    o.cur = o.cur + n
  elseif index > o.index then
    local more = o.cur > 0 and pk('<I2I7', o.index % 65536, o.cur) or ''
    o.v, o.s = (o.n > 0 and cut(o.v, o.s, o.s + o.n * 9 - 1) or '') .. more, 1
    o.n, o.index, o.cur = #o.v / 9, index, n
  else
    local s, before = o.s, o.s
    for _ = 1, o.n do
      local i, x, after = each_cell(o, s)
      if i > index then break end
      if i == index then n, before = n + x, after else before = after end
      s = i == index and s or after
      if i == index then break end
    end
    local old = o.n > 0 and o.v or ''
    o.v = cut(old, o.s, s - 1) .. pk('<I2I7', index % 65536, n) .. cut(old, before, o.s + o.n * 9 - 1)
    o.s, o.n = 1, #o.v / 9
  end
end
local function give_back_cells(o, at, n)
  local index = floor(at / o.want)
  if o.sum == 0 or o.width ~= o.want or leaves_cells(o, at) <= o.now then return true end
  if index == o.index then
    n = math.min(n, o.cur)
    if n == 0 then return true end
    o.cur, o.sum = o.cur - n, o.sum - n
    return
  end
  local s = o.s
  for _ = 1, o.n do
    local i, x, after = each_cell(o, s)
    if i == index then
      n = math.min(n, x)
      o.sum = o.sum - n
      local left = x > n and pk('<I2I7', i % 65536, x - n) or ''
      o.v = cut(o.v, o.s, s - 1) .. left .. cut(o.v, after, o.s + o.n * 9 - 1)
      o.s, o.n = 1, #o.v / 9
      return
    end
    s = after
  end
  return true
end
local row = kinds[2]
row.sub_at = give_back_cells
keep_raw(row)
row.aged = {
  open = age,
  adopt = function(o) return o end,
  used = function(o, t)
    local used, s = look_cells(o, 0), o.s
    if t == o.now then return used end
    for _ = 1, o.n do
      local i, x, after = each_cell(o, s)
      if (i + 1) * o.width + o.w - 1 > t then return used end
      used, s = used - x, after
    end
    return (o.index + 1) * o.width + o.w - 1 > t and used or 0
  end,
  leaving = function(o)
    local i, s = 0, o.s
    return function()
      i = i + 1
      local index, hits = o.index, o.cur
      if i <= o.n then index, hits, s = each_cell(o, s) end
      if i > o.n + 1 then return nil end
      return (index + 1) * o.width + o.w - 1, hits
    end
  end,
  begin = function() end,
  add = row.add,
  sub = row.sub,
  sub_at = row.sub_at,
  empty = changes(function(o) o.sum, o.cur, o.n = 0, 0, 0 end),
  book = changes(book_cells),
  leaves = leaves_cells,
  lasts = leaves_cells,
  expires = expires_cells,
  trim = function() end,
  save = row.save,
}
elseif code >= 3 and code <= 4 then
local function look_period(o, n)
  local used, quota = o.used, o.quota
  if n == 0 or used <= quota - n then return used, 0 end
  if n > quota then return used, NEVER end
  return used, o.mark + o.w
end
local function add_period(o, n)
  if o.live then
    o.used = math.min(o.used + n, MAX)
  else
    o.live, o.mark, o.used = true, o.next, n
  end
end
local function expires_period(o)
  return o.live and o.mark + o.w or 0
end
local function save_period(o)
  if not o.live then return nil end
  return pk('<BBI7I7', 1, o.kind, o.mark, o.used), o.mark + o.w
end
local function open_period(kind, v, i, at, quota, w, next)
  local mark, used, live = next, 0, false
  if v then
    mark, used = up('<I7I7', v, i + 2)
    if kind == 3 and mark > at then at, next = mark, mark end
    live = at < mark + w
    if not live then used = 0 end
  end
  return {
    now = at, kind = kind, quota = quota, w = w, next = next,
    mark = mark, used = used, live = live,
  }
end
if code == 3 then
local function open_fixed(v, i, at)
  local quota, w
  quota, w, p = up('<I7I7', args, p)
  return open_period(3, v, i, at, quota, w, at)
end
kinds[3] = {open = open_fixed, look = look_period, add = add_period, save = save_period, expires = expires_period}
end
if code == 4 then
local function period_end(at)
  local start, e1, e2, e3
  start, e1, e2, e3, p = up('<I7I7I7I7', args, p)
  if at < start or at >= e3 then off = at end
  return at < e1 and e1 or at < e2 and e2 or e3
end
local function open_calendar(v, i, at)
  local quota
  quota, p = up('<I7', args, p)
  return open_period(4, v, i, at, quota, 0, period_end(at))
end
kinds[4] = {open = open_calendar, look = look_period, add = add_period, save = save_period, expires = expires_period}
end
local function sub_period(o, n)
  if n >= o.used then
    o.live, o.used = false, 0
  else
    o.used = o.used - n
  end
end
for number = 3, 4 do
  local row = rawget(kinds, number)
  if row then row.sub = sub_period end
end
local function has(o, at)
  if not o.live or o.kind == 4 and o.mark ~= o.next then return false end
  if o.kind == 3 then return at >= o.mark and at < o.mark + o.w end
  local start, e1, e2, e3 = up('<I7I7I7I7', args, o.periods)
  local begin = o.mark
  if begin == e1 then begin = start elseif begin == e2 then begin = e1 elseif begin == e3 then begin = e2 end
  return at >= begin and at < o.mark
end
local function give_back_period(o, at, n)
  if not has(o, at) then return true end
  o.used = math.max(o.used - n, 0)
end
for number = 3, 4 do
  local row = rawget(kinds, number)
  if row then
    local plain = row.open
    row.open = function(v, i, at)
      local q = p + 7
      local o = plain(v, i, at)
      o.periods = q
      return o
    end
    row.sub_at = function(o, at, n)
      if not has(o, at) then return true end
      row.sub(o, n)
    end
    keep_raw(row)
    row.aged = {
      open = function(v, at) return row.open(v, 1, at) end,
      adopt = function(o) return o end,
      used = function(o, t) return o.live and t < o.mark + o.w and o.used or 0 end,
      leaving = function(o)
        local left = not o.live or o.used == 0
        return function()
          if left then return nil end
          left = true
          return o.mark + o.w, o.used
        end
      end,
      begin = function(o)
        if not o.live then o.live, o.mark, o.used, o.raw = true, o.next, 0, nil end
      end,
      add = row.add,
      sub = changes(function(o, n) o.used = math.max(o.used - n, 0) end),
      sub_at = changes(give_back_period),
      empty = changes(function(o) o.used = 0 end),
      book = function(o, at, _, n)
        if has(o, at) then o.used, o.raw = math.min(o.used + n, MAX), nil end
      end,
      leaves = function(o, at) return has(o, at) and o.mark + o.w or 0 end,
      lasts = function(o, at) return o.used == 0 and has(o, at) and o.mark + o.w or 0 end,
      expires = function(o) return o.live and o.used > 0 and o.mark + o.w or 0 end,
      trim = function(o)
        if o.used > 0 then return end
        o.live = false
        if o.raw and up('<I7', o.raw, 10) == 0 then o.raw = nil end
      end,
      save = row.save,
    }
  end
end
elseif code >= 5 and code <= 5 then
local function times(n, length, quota)
  if n <= MAX / length - 1 then
    n = n * length
    return floor(n / quota), n % quota
  end
  local whole, rest = floor(length / quota), length % quota
  local q, r = 0, 0
  for bit = 52, 0, -1 do
    q = q * 2
    if r >= quota - r then q, r = q + 1, r - (quota - r) else r = r + r end
    local power = 2 ^ bit
    if n >= power then
      n, q = n - power, q + whole
      if rest > 0 and r >= quota - rest then q, r = q + 1, r - (quota - rest) else r = r + rest end
    end
    if q > MAX then return NEVER, 0 end
  end
  return q, r
end
local function ahead(o, n)
  local x = (o.cap - n) * o.length - o.f
  return x < 0 and -1 or floor(x / o.quota)
end
local function look_bucket(o, n)
  local d, f, cap = o.d, o.f, o.cap
  if cap == 0 then return 0, n > 0 and NEVER or 0 end
  local used = 0
  if d > ahead(o, 0) then
    used = cap
  elseif d > 0 or f > 0 then
    used = floor((d * o.quota + f - 1) / o.length) + 1
  end
  if n == 0 then return used, 0 end
  if n > cap then return used, NEVER end
  local free = ahead(o, n)
  if d <= free then return used, 0 end
  return used, o.now + d - free
end
local function add_bucket(o, n)
  if o.cap == 0 then
    o.d, o.f = 0, 0
    return
  end
  local q, r = times(n, o.length, o.quota)
  if r >= o.quota - o.f then q, r = q + 1, r - (o.quota - o.f) else r = r + o.f end
  o.d, o.f = o.d + q, r
  if o.now + o.d >= MAX then o.d, o.f = MAX - o.now, 0 end
end
local function expires_bucket(o)
  if o.f > 0 then return o.now + o.d + 1 end
  return o.d > 0 and o.now + o.d or 0
end
local function save_bucket(o)
  local d, f = o.d, o.f
  if d == 0 and f == 0 then return nil end
  local common = f > 0 and o.common or 0
  local step = floor(o.length * o.common / 8) + 1
  return pk('<BBI7I7I7', 1, 5, o.now + d, f * common, o.quota * common), (floor(expires_bucket(o) / step) + 1) * step
end
local function open_bucket(v, i, at)
  local cap, quota, length, common
  cap, quota, length, common, p = up('<I7I7I7I7', args, p)
  local d, f = 0, 0
  if v then
    local till, part, whole = up('<I7I7I7', v, i + 2)
    if till >= at then
      d = till - at
      if whole > 0 then
        if whole == quota * common then f = part / common else d = d + 1 end
      end
    end
  end
  return {
    now = at, cap = cap, quota = quota, length = length, common = common, d = d, f = f,
  }
end
kinds[5] = {open = open_bucket, look = look_bucket, add = add_bucket, save = save_bucket, expires = expires_bucket}
kinds[5].sub = function(o, n)
  if o.cap == 0 or n > MAX then
    o.d, o.f = 0, 0
    return
  end
  local q, r = times(n, o.length, o.quota)
  local d, f = o.d - q, o.f - r
  if f < 0 then d, f = d - 1, f + o.quota end
  if d < 0 then d, f = 0, 0 end
  o.d, o.f = d, f
end
local function advance(o, t)
  local d = o.now + o.d - t
  if d < 0 then o.f, d = 0, 0 end
  o.d, o.now = d, t
end
local function copy(h)
  local b = h.base
  return {now = b.now, cap = b.cap, quota = b.quota, length = b.length, common = b.common, d = b.d, f = b.f}
end
local function level(h, t, n)
  local o, held, s = copy(h), h.sum, 1
  for _ = 1, h.count do
    local till, _, keep, hits
    till, _, _, keep, hits, s = up('<I7I7c12BI7', h.list, s)
    if till > t then break end
    held = held - hits
    if keep == 1 then
      advance(o, till)
      add_bucket(o, hits)
    end
  end
  advance(o, t)
  local used = look_bucket(o, 0)
  local fits = n == 0 or n <= o.cap - held
  if fits and n > 0 then
    local _, at = look_bucket(o, n + held)
    fits = at == 0
  end
  return math.min(used + held, o.cap), fits, expires_bucket(o)
end
local function wait(h, n)
  local o, held, s = copy(h), h.sum, 1
  for i = 1, h.count + 1 do
    local till, _, keep, hits = NEVER, nil, 0, 0
    if i <= h.count then till, _, _, keep, hits, s = up('<I7I7c12BI7', h.list, s) end
    if till > h.now and n <= o.cap - held then
      if o.now < h.now then advance(o, h.now) end
      local _, at = look_bucket(o, n + held)
      if at == 0 then at = o.now end
      if at < till then return at end
    end
    if till == NEVER then return NEVER end
    advance(o, till)
    held = held - hits
    if keep == 1 then add_bucket(o, hits) end
  end
end
local function give_back_bucket(o, at, n)
  if o.quota == 0 then return true end
  local q, r = times(n, o.length, o.quota)
  q = q - math.max(o.now - at, 0)
  if q < 0 then return true end
  local d, f = o.d - q, o.f - r
  if f < 0 then d, f = d - 1, f + o.quota end
  if d < 0 then d, f = 0, 0 end
  o.d, o.f = d, f
end
local row = kinds[5]
row.sub_at = give_back_bucket
keep_raw(row)
row.aged = {
  open = function(v, _, seen) return row.open(v, 1, seen) end,
  adopt = function(o) return o end,
  level = level,
  wait = wait,
  begin = function() end,
  advance = advance,
  add = row.add,
  sub = row.sub,
  sub_at = row.sub_at,
  empty = changes(function(o) o.d, o.f = 0, 0 end),
  book = function(o, _, settled, n)
    advance(o, settled)
    row.add(o, n)
  end,
  leaves = function() return 0 end,
  lasts = function() return 0 end,
  expires = expires_bucket,
  trim = function() end,
  save = row.save,
}
elseif code >= 6 and code <= 6 then
local function part(o, used, n)
  return math.min(math.max(used - o.count + 1 + n, 0), n)
end
local function open_parts(o, at)
  local kind
  kind, p = up('<B', args, p)
  local base_row = kinds[kind]
  local base = base_row.open(o.bv, o.bi, at)
  kind, p = up('<B', args, p)
  local inner_row = kinds[kind]
  local inner = inner_row.open(o.iv, o.ii, at)
  return base, inner, base_row, inner_row
end
local function reopen(o, at)
  local back = p
  p = o.p
  local base, inner = open_parts(o, at)
  p = back
  return base, inner
end
local function look_after(o, n)
  local base_row, inner_row = o.base_row, o.inner_row
  local held = base_row.look(o.base, 0)
  local used, fits = inner_row.look(o.inner, part(o, held, n))
  if fits == 0 then return used, 0 end
  local function fits_at(at)
    local base, inner = reopen(o, at)
    off = false
    local h = base_row.look(base, 0)
    local _, f = inner_row.look(inner, part(o, h, n))
    return f == 0
  end
  local hi = fits
  if fits == NEVER then
    hi = math.max(base_row.expires(o.base), inner_row.expires(o.inner))
    if hi <= o.now or not fits_at(hi) then return used, NEVER end
  end
  local lo = o.now
  if lo < hi - 1 and not fits_at(hi - 1) then lo = hi - 1 end
  while hi - lo > 1 do
    local mid = lo + floor((hi - lo) / 2)
    if fits_at(mid) then hi = mid else lo = mid end
  end
  return used, hi
end
local function add_after(o, n)
  local k = part(o, o.base_row.look(o.base, 0), n)
  o.base_row.add(o.base, n)
  o.touched = k > 0
  if k > 0 then o.inner_row.add(o.inner, k) end
end
local function expires_after(o)
  return math.max(o.base_row.expires(o.base), o.inner_row.expires(o.inner))
end
local function save_after(o)
  local b = o.base_row.save(o.base) or ''
  local s
  if o.touched then
    s = o.inner_row.save(o.inner)
  elseif o.iv then
    s = cut(o.iv, o.ii)
  end
  s = s or ''
  o.bv, o.bi, o.iv, o.ii = b ~= '' and b, 1, s ~= '' and s, 1
  if b == '' and s == '' then return nil end
  return pk('<BBI3', 1, 6, #b) .. b .. s, expires_after(o)
end
local function open_after(v, i, at)
  local count
  count, p = up('<I7', args, p)
  local o = {
    now = at, count = count, p = p, bv = false, bi = 1, iv = false, ii = 1,
    base = nil, inner = nil, base_row = nil, inner_row = nil, touched = false,
  }
  if v then
    local len = up('<I3', v, i + 2)
    if len > 0 then o.bv, o.bi = v, i + 5 end
    if #v >= i + 5 + len then o.iv, o.ii = v, i + 5 + len end
  end
  o.base, o.inner, o.base_row, o.inner_row = open_parts(o, at)
  o.now = math.max(o.base.now, o.inner.now)
  if o.base.now < o.now or o.inner.now < o.now then
    off = false
    o.base, o.inner = reopen(o, o.now)
  end
  return o
end
kinds[6] = {
  open = open_after, look = look_after, add = add_after, save = save_after, expires = expires_after,
  parts = true,
}
kinds[6].sub = function(o, n)
  local k = math.min(math.max(o.base_row.look(o.base, 0) - o.count + 1, 0), n)
  o.base_row.sub(o.base, n)
  if n > MAX then k = n end
  o.touched = k > 0
  if k > 0 then o.inner_row.sub(o.inner, k) end
end
kinds[6].sub_at = function(o, at, n)
  local k = math.min(math.max(o.base_row.look(o.base, 0) - o.count + 1, 0), n)
  o.touched = k > 0 and not o.inner_row.sub_at(o.inner, at, k)
  o.base_row.sub_at(o.base, at, n)
end
elseif code >= 7 and code <= 9 then
local FEW = 64
local EPOCH = 1577836800000000
local MOST_USES = 2047
local function find(o)
  local at = string.find(o.v, o.member, o.s, true)
  while at and (at - o.s) % 17 ~= 0 do at = string.find(o.v, o.member, at + 1, true) end
  return at
end
local function inside(o)
  if o.count == 0 then return false end
  if not o.set then return find(o) ~= nil end
  local score = call('ZSCORE', o.set, o.member)
  return score and floor(score) + EPOCH > o.edge
end
local function look_members(o, n)
  local used, quota = o.count, o.quota
  if n == 0 or used < quota or inside(o) then return used, 0 end
  if quota == 0 then return used, NEVER end
  if not o.sliding then return used, o.mark + o.w end
  local oldest = used - quota
  if not o.set then return used, up('<I7', o.v, o.s + oldest * 17 + 8) + o.w end
  oldest = call('ZCARD', o.set) - used + oldest
  oldest = call('ZRANGE', o.set, oldest, oldest, 'WITHSCORES')
  return used, floor(oldest[2]) + EPOCH + o.w
end
local function score_after(score, date)
  if not score or floor(score) ~= date then return date end
  return floor(score + 0.0625) == date and score + 0.0625 or score
end
local function spread(o)
  call('DEL', o.keys[1], o.keys[2])
  o.set, o.hash = o.keys[1], o.keys[2]
  local score
  for s = o.s, #o.v, 17 do
    local member = cut(o.v, s, s + 7)
    local date, uses = up('<I7I2', o.v, s + 8)
    score = score_after(score, date - EPOCH)
    call('ZADD', o.set, score, member)
    if uses > 1 then call('HSET', o.hash, member, uses) end
  end
  o.score, o.v = score, ''
end
local function drop_oldest(o, n)
  local old = call('ZRANGE', o.set, 0, n - 1)
  call('ZREM', o.set, unpack(old))
  call('HDEL', o.hash, unpack(old))
end
local function add_to_set(o)
  local out = call('ZCARD', o.set) - o.count
  local uses = 1
  if inside(o) then
    uses = math.min((call('HGET', o.hash, o.member) or 1) + 1, MOST_USES)
  else
    local over = o.count + 1 - o.quota
    if over > 0 then
      over = math.min(over, o.count)
      out, o.count = out + over, o.count - over
    end
    o.count = o.count + 1
  end
  while out > 0 do
    drop_oldest(o, math.min(out, 1000))
    out = out - 1000
  end
  o.score, o.newest = score_after(o.score, o.now - EPOCH), o.now
  call('ZADD', o.set, o.score, o.member)
  if uses > 1 then call('HSET', o.hash, o.member, uses) else call('HDEL', o.hash, o.member) end
end
local function add_members(o)
  if o.count == 0 then
    if o.set then call('DEL', o.set, o.hash) end
    o.mark, o.set, o.v, o.s = o.next, nil, '', 1
  end
  if o.set then return add_to_set(o) end
  local uses, v, s = 1, o.v, o.s
  local at = o.count > 0 and find(o)
  if at then
    uses = math.min(up('<I2', v, at + 15) + 1, MOST_USES)
    v = cut(v, s, at - 1) .. cut(v, at + 17)
  else
    local over = o.count + 1 - o.quota
    if over > 0 then
      over = math.min(over, o.count)
      s, o.count = s + over * 17, o.count - over
    end
    v, o.count = cut(v, s), o.count + 1
  end
  o.v, o.s, o.first, o.newest = v .. o.member .. pk('<I7I2', o.now, uses), 1, 1, o.now
  if o.count > FEW then spread(o) end
end
local function expires_members(o)
  return o.newest and (o.sliding and o.newest or o.mark) + o.w or 0
end
local function save_members(o)
  if not o.newest then return nil end
  local head = pk('<BBI7B', 1, o.kind, o.mark, o.set and 1 or 0)
  return o.set and head or head .. cut(o.v, o.first), expires_members(o)
end
local function open_members(kind, v, at, k, quota, w, next)
  local member
  member, p = up('<c8', args, p)
  local keys = {KEYS[k], KEYS[k + 1]}
  local o = {
    now = at, kind = kind, sliding = kind == 7, quota = quota, w = w, next = next,
    member = member, keys = keys, set = nil, hash = nil, v = '', s = 1, first = 1,
    count = 0, mark = 0, newest = false, score = nil, edge = -NEVER,
  }
  if not v then return o end
  local mark, far = up('<I7B', v, 3)
  o.mark = mark
  local count, newest
  if far == 1 then
    local last = call('ZRANGE', keys[1], -1, -1, 'WITHSCORES')[2]
    if not last then return o end
    o.set, o.hash, o.score = keys[1], keys[2], tonumber(last)
    newest = floor(last) + EPOCH
  else
    o.v, o.s, o.first = v, 11, 11
    newest = up('<I7', v, #v - 8)
  end
  if newest > at then at = newest end
  o.now, o.newest = at, newest
  if kind == 8 then o.next = at end
  if kind ~= 7 then
    if at >= mark + w then return o end
  else
    o.edge = at - w
  end
  if far == 1 then
    o.count = call('ZCOUNT', keys[1], o.edge > -NEVER and o.edge - EPOCH + 1 or '-inf', '+inf')
    return o
  end
  local lo, hi = 0, (#v - 10) / 17
  count = hi
  while lo < hi do
    local mid = floor((lo + hi) / 2)
    if up('<I7', v, 19 + mid * 17) <= o.edge then lo = mid + 1 else hi = mid end
  end
  o.s, o.count = 11 + lo * 17, count - lo
  return o
end
if code == 7 then
local function open_members_sliding(v, _, at, k)
  local quota, w
  quota, w, p = up('<I7I7', args, p)
  return open_members(7, v, at, k, quota, w, 0)
end
kinds[7] = {
  open = open_members_sliding, look = look_members, add = add_members, save = save_members, expires = expires_members,
  keys = 3, parts = true,
}
end
if code == 8 then
local function open_members_fixed(v, _, at, k)
  local quota, w
  quota, w, p = up('<I7I7', args, p)
  return open_members(8, v, at, k, quota, w, at)
end
kinds[8] = {
  open = open_members_fixed, look = look_members, add = add_members, save = save_members, expires = expires_members,
  keys = 3, parts = true,
}
end
if code == 9 then
local function period_end(at)
  local start, e1, e2, e3
  start, e1, e2, e3, p = up('<I7I7I7I7', args, p)
  if at < start or at >= e3 then off = at end
  return at < e1 and e1 or at < e2 and e2 or e3
end
local function open_members_calendar(v, _, at, k)
  local quota
  quota, p = up('<I7', args, p)
  return open_members(9, v, at, k, quota, 0, period_end(at))
end
kinds[9] = {
  open = open_members_calendar, look = look_members, add = add_members, save = save_members, expires = expires_members,
  keys = 3, parts = true,
}
end
local function sub_from_set(o)
  local uses = tonumber(call('HGET', o.hash, o.member) or 1)
  if uses == MOST_USES then return true end
  if uses > 2 then
    call('HSET', o.hash, o.member, uses - 1)
  elseif uses == 2 then
    call('HDEL', o.hash, o.member)
  else
    call('ZREM', o.set, o.member)
    o.count = o.count - 1
    local last = call('ZRANGE', o.set, -1, -1, 'WITHSCORES')[2]
    o.score = tonumber(last)
    o.newest = last and floor(last) + EPOCH
  end
end
local function sub_members(o)
  if not inside(o) then return true end
  if o.set then return sub_from_set(o) end
  local at, v = find(o), o.v
  local uses = up('<I2', v, at + 15)
  if uses == MOST_USES then return true end
  if uses > 1 then
    o.v = cut(v, 1, at + 14) .. pk('<I2', uses - 1) .. cut(v, at + 17)
    return
  end
  v = cut(v, 1, at - 1) .. cut(v, at + 17)
  o.v, o.count = v, o.count - 1
  o.newest = #v > o.first and up('<I7', v, #v - 8)
end
for number = 7, 9 do
  local row = rawget(kinds, number)
  if row then row.sub = sub_members end
end
local function give_back_member(o, at, n)
  if not inside(o) then return end
  local date
  if o.set then
    date = floor(call('ZSCORE', o.set, o.member)) + EPOCH
  else
    date = up('<I7', o.v, find(o) + 8)
  end
  if date == at then sub_members(o, n) end
end
for number = 7, 9 do
  local row = rawget(kinds, number)
  if row then row.sub_at = give_back_member end
end
elseif code >= 10 and code <= 10 then
local function look_ever(o, n)
  local used = o.used
  if n == 0 or used <= o.quota - n then return used, 0 end
  return used, NEVER
end
local function add_ever(o, n)
  o.used = math.min(o.used + n, MAX)
end
local function expires_ever(o)
  return o.used > 0 and NEVER or 0
end
local function save_ever(o)
  if o.used == 0 then return nil end
  return pk('<BBI7', 1, 10, o.used), NEVER
end
local function open_ever(v, i, at)
  local quota
  quota, p = up('<I7', args, p)
  return {now = at, quota = quota, used = v and up('<I7', v, i + 2) or 0}
end
kinds[10] = {open = open_ever, look = look_ever, add = add_ever, save = save_ever, expires = expires_ever}
kinds[10].sub = function(o, n)
  o.used = math.max(o.used - n, 0)
end
kinds[10].sub_at = function(o, _, n) o.used = math.max(o.used - n, 0) end
kinds[10].aged = {
  open = function(v, at) return kinds[10].open(v, 1, at) end,
  adopt = function(o) return o end,
  used = function(o) return o.used end,
  leaving = function() return function() return nil end end,
  begin = function() end,
  add = kinds[10].add,
  sub = kinds[10].sub,
  sub_at = kinds[10].sub_at,
  empty = function(o) o.used = 0 end,
  book = function(o, _, _, n) add_ever(o, n) end,
  leaves = function() return NEVER end,
  lasts = function() return NEVER end,
  expires = expires_ever,
  trim = function() end,
  save = save_ever,
}
elseif code >= 11 and code <= 11 then
local function skip_places(o)
  while o.count > 0 do
    local till, _, hits, s = up('<I7c12I6', o.v, o.s)
    if till > o.now then return end
    o.sum, o.count, o.s = o.sum - hits, o.count - 1, s
  end
end
local function find_place(o, id)
  local at = string.find(o.v, id, o.s + 7, true)
  while at and (at - 7 - o.s) % 25 ~= 0 do at = string.find(o.v, id, at + 1, true) end
  return at and at - 7
end
local function insert_place(o, till, id, hits)
  local s = o.s + o.count * 25
  while s > o.s and up('<I7', o.v, s - 25) > till do s = s - 25 end
  o.v = cut(o.v, o.s, s - 1) .. pk('<I7c12I6', till, id, hits) .. cut(o.v, s)
  o.s, o.count, o.sum, o.raw = 1, o.count + 1, o.sum + hits, nil
end
local function remove_place(o, s)
  local _, _, hits = up('<I7c12I6', o.v, s)
  o.v = cut(o.v, o.s, s - 1) .. cut(o.v, s + 25)
  o.s, o.count, o.sum, o.raw = 1, o.count - 1, o.sum - hits, nil
  return hits
end
kinds[11] = {
  open = function(v, i, at)
    local quota, length
    quota, length, p = up('<I7I7', args, p)
    local o = {now = at, quota = quota, v = '', s = 1, sum = 0, count = 0}
    if not v then return o end
    o.sum = up('<I7', v, i + 2)
    o.v, o.raw, o.s, o.count = v, v, i + 9, (#v - i - 8) / 25
    local newest = up('<I7', v, #v - 24) - length
    if newest > at then o.now = newest end
    skip_places(o)
    return o
  end,
  look = function(o, n)
    if n == 0 then return o.sum, 0 end
    if n > o.quota then return o.sum, NEVER end
    local fits, over, s = 0, o.sum + n - o.quota, o.s
    if o.most and o.count >= o.most then fits = up('<I7', o.v, s) end
    while over > 0 do
      local till, _, hits
      till, _, hits, s = up('<I7c12I6', o.v, s)
      over = over - hits
      if till > fits then fits = till end
    end
    return o.sum, fits
  end,
  add = function() end,
  sub = function() return true end,
  sub_at = function() end,
  expires = function(o)
    return o.count > 0 and up('<I7', o.v, o.s + o.count * 25 - 25) or 0
  end,
  save = function(o)
    if o.raw then return o.raw, up('<I7', o.raw, #o.raw - 24) end
    if o.count == 0 then return nil end
    return pk('<BBI7', 1, 11, o.sum) .. cut(o.v, o.s), up('<I7', o.v, #o.v - 24)
  end,
  hold = function(o, n, id, till)
    if o.count >= o.most or find_place(o, id) then return false end
    insert_place(o, till, id, math.min(n, 1099511627776))
    return true
  end,
  finish = function(o, id)
    local s = find_place(o, id)
    if s then remove_place(o, s) end
    return s
  end,
  renew = function(o, id, till)
    local s = find_place(o, id)
    if s then insert_place(o, till, id, remove_place(o, s)) end
    return s
  end,
}
end
  return rawget(rows, code)
end})
local HOLD, HOLD_SIZE = '<I7I7c12BI7', 34
local function anew(o)
  local back = p
  p = o.p
  o.held, o.base, o.plain = false, nil, o.row.open(false, 1, o.now, o.k)
  o.plain.most = o.most
  p = back
end
local function hold_at(o, s)
  return up(HOLD, o.list, s)
end
local function find_hold(o, id)
  local at = string.find(o.list, id, 15, true)
  while at and (at - 15) % HOLD_SIZE ~= 0 do at = string.find(o.list, id, at + 1, true) end
  return at and at - 14
end
local function live_hold(o, id)
  local s = o.held and find_hold(o, id)
  return s and hold_at(o, s) > o.now and s
end
local function insert_hold(o, till, at, id, keep, hits)
  local s = #o.list + 1
  while s > 1 and up('<I7', o.list, s - HOLD_SIZE) > till do s = s - HOLD_SIZE end
  local h = pk(HOLD, till, at, id, keep, hits)
  o.list = s > #o.list and o.list .. h or cut(o.list, 1, s - 1) .. h .. cut(o.list, s)
  o.count, o.sum = o.count + 1, o.sum + hits
end
local function remove_hold(o, s)
  local _, _, _, _, hits = hold_at(o, s)
  o.list = cut(o.list, 1, s - 1) .. cut(o.list, s + HOLD_SIZE)
  o.count, o.sum = o.count - 1, o.sum - hits
end
local function newest(o)
  local latest = 0
  for i = 1, o.count do
    local _, at, _, keep = hold_at(o, (i - 1) * HOLD_SIZE + 1)
    if keep == 1 and at >= latest then latest = at + 1 end
  end
  return latest
end
local function ended(o, t)
  for i = 1, o.count do
    if hold_at(o, (i - 1) * HOLD_SIZE + 1) > t then return i - 1 end
  end
  return o.count
end
local function extra(o, t)
  local n, s = o.sum, 1
  for _ = 1, o.count do
    local till, at, _, keep, hits, after = hold_at(o, s)
    if till > t then break end
    if keep == 0 or o.row.aged.leaves(o.base, at) <= t then n = n - hits end
    s = after
  end
  return n
end
local function used_holding(o, t)
  if o.row.aged.level then
    local used = o.row.aged.level(o, t, 0)
    return used
  end
  return math.min(o.row.aged.used(o.base, t) + extra(o, t), MAX)
end
local function fits_holding(o, t, n)
  if n > MAX then n = MAX end
  if o.row.aged.level then
    local _, fits = o.row.aged.level(o, t, n)
    return fits
  end
  local room = o.base.quota - extra(o, t)
  return n <= room and o.row.aged.used(o.base, t) <= room - n
end
local function expires_holding(o)
  local aged, last = o.row.aged, 0
  if o.count > 0 then
    last = hold_at(o, #o.list - HOLD_SIZE + 1)
    if aged.level then
      local _, _, expires = aged.level(o, last, 0)
      return math.max(last, expires)
    end
  end
  last = math.max(last, aged.expires(o.base))
  if o.kept > 0 then last = math.max(last, aged.lasts(o.base, o.kept - 1)) end
  return last
end
local function departures(o)
  local times, hits, n, s, sorted = {}, {}, 0, 1, true
  for _ = 1, o.count do
    local till, at, _, keep, held, after = hold_at(o, s)
    if keep == 1 then till = math.max(till, o.row.aged.leaves(o.base, at)) end
    if till > o.now then
      sorted = sorted and (n == 0 or times[n] <= till)
      n = n + 1
      times[n], hits[n] = till, held
    end
    s = after
  end
  if sorted then return times, hits end
  local order, sorted_times, sorted_hits = {}, {}, {}
  for i = 1, n do order[i] = i end
  table.sort(order, function(i, j) return times[i] < times[j] end)
  for i = 1, n do sorted_times[i], sorted_hits[i] = times[order[i]], hits[order[i]] end
  return sorted_times, sorted_hits
end
local function wait_holding(o, n)
  local aged = o.row.aged
  if aged.wait then return aged.wait(o, n) end
  local times, hits = departures(o)
  local used, room = aged.used(o.base, o.now), o.base.quota - extra(o, o.now)
  local i, at = 1, o.now
  local final = aged.leaving(o.base, o.now)
  local leaves, gone = final()
  while n > room or used > room - n do
    if times[i] and (not leaves or times[i] <= leaves) then
      at, room, i = times[i], room + hits[i], i + 1
    elseif leaves then
      at, used = leaves, used - gone
      leaves, gone = final()
    else
      return NEVER
    end
    if at == NEVER then return NEVER end
  end
  return at
end
local function look_holding(o, n)
  local used, capacity = used_holding(o, o.now), o.base.cap or o.base.quota
  if n == 0 or capacity > MAX then return used, 0 end
  if n > capacity then return used, NEVER end
  local fits = 0
  if not fits_holding(o, o.now, n) then
    fits = wait_holding(o, n)
    if fits == NEVER then return used, NEVER end
  end
  if o.most then
    local over = ended(o, o.now)
    if o.count - over >= o.most then
      fits = math.max(fits, (hold_at(o, over * HOLD_SIZE + 1)))
    end
  end
  return used, fits
end
local function begin_holding(o)
  local aged = o.row.aged
  if not o.held then
    o.held, o.list, o.count, o.sum, o.seen, o.kept = true, '', 0, 0, o.now, 0
    o.base, o.plain = aged.adopt(o.plain), nil
    return
  end
  local over, s, lost = ended(o, o.now), 1, false
  for _ = 1, over do
    local till, at, _, keep, hits, after = hold_at(o, s)
    o.sum = o.sum - hits
    lost = lost or at + 1 == o.kept
    if keep == 1 then aged.book(o.base, at, till, hits) end
    s = after
  end
  if aged.advance then aged.advance(o.base, o.now) end
  if over == 0 then return end
  o.list, o.count = cut(o.list, s), o.count - over
  if lost then o.kept = newest(o) end
  if o.count == 0 then aged.trim(o.base) end
end
local function finish_holding(o)
  local aged = o.row.aged
  if aged.tighten then aged.tighten(o) end
  o.seen = math.max(o.seen, o.now)
  if o.count > 0 then return end
  if aged.expires(o.base) <= o.now then
    anew(o)
  elseif not aged.dated then
    aged.trim(o.base)
    o.held, o.plain, o.base = false, o.base, nil
  elseif o.base.n == 0 then
    anew(o)
  end
end
local function hold(o, n, id, at, till)
  if o.row.hold then return o.row.hold(o.plain, n, id, till) end
  if o.held and (o.count - ended(o, o.now) >= o.most or find_hold(o, id)) then return false end
  begin_holding(o)
  o.row.aged.begin(o.base)
  insert_hold(o, till, at, id, o.keep, math.min(n, MAX - o.sum))
  if o.keep == 1 and at >= o.kept then o.kept = at + 1 end
  finish_holding(o)
  return true
end
local function settle(o, id, n)
  if o.row.finish then return o.row.finish(o.plain, id) end
  if not live_hold(o, id) then return false end
  begin_holding(o)
  local s = find_hold(o, id)
  local _, at, _, keep, hits = hold_at(o, s)
  remove_hold(o, s)
  if keep == 1 and at + 1 == o.kept then o.kept = newest(o) end
  n = n or hits
  if n > 0 then o.row.aged.book(o.base, at, o.now, math.min(n, MAX)) end
  finish_holding(o)
  return true
end
local function renew(o, id, till)
  if not o.most then return false end
  if o.row.renew then return o.row.renew(o.plain, id, till) end
  if not live_hold(o, id) then return false end
  begin_holding(o)
  local s = find_hold(o, id)
  local _, at, _, keep, hits = hold_at(o, s)
  remove_hold(o, s)
  insert_hold(o, till, at, id, keep, hits)
  finish_holding(o)
  return true
end
local function look(o, n)
  if o.held then return look_holding(o, n) end
  return o.row.look(o.plain, n)
end
local function add(o, n)
  if not o.held and not o.holds then return o.row.add(o.plain, n) end
  begin_holding(o)
  o.row.aged.add(o.base, n)
  finish_holding(o)
end
local function sub(o, n)
  if not o.held then return o.row.sub(o.plain, n) end
  begin_holding(o)
  o.row.aged.sub(o.base, n)
  finish_holding(o)
end
local function sub_at(o, at, n)
  local plain = o.plain
  local groups = plain and o.kind == 1 and (plain.group > 1 or plain.excess > 0)
  if not o.held and not groups then return o.row.sub_at(plain, at, n) end
  begin_holding(o)
  o.row.aged.sub_at(o.base, at, n)
  finish_holding(o)
end
local function expires(o)
  if o.held then return expires_holding(o) end
  return o.row.expires(o.plain)
end
local function save(o)
  if not o.held then return o.row.save(o.plain) end
  return pk('<BBBI2I7I7I7', 1, 12, o.kind, o.count, o.sum, o.seen, o.kept) .. o.list .. (o.row.aged.save(o.base) or ''),
    expires_holding(o)
end
local LAST = MAX - 3153600000000000
local SETTLE, CANCEL, RENEW, ONLY_LOOK, ALWAYS = 5, 6, 7, 16, 17
local COUNT_DENIED, NAMED, QUIET, SURE, BANS, HOLDS, KEEPS, ALL = 1, 2, 4, 8, 16, 32, 64, 128
local function has_flag(flags, flag)
  return floor(flags / flag) % 2 == 1
end
local function banned(o)
  return o.strikes > 0 and o.ban_end > o.now
end
local function left(o)
  if o.now < o.ban_end then return o.strikes end
  return math.max(0, o.strikes - floor((o.now - o.ban_end) / o.forget))
end
local function answer(o, before, used, fits)
  local reset = expires(o)
  o.before, o.used, o.banned, o.held_now = before, used, 0, 0
  o.wait = fits == NEVER and NEVER or math.max(fits - o.now, 0)
  o.reset = reset == NEVER and NEVER or math.max(reset - o.now, 0)
end
local function answer_banned(o, n)
  local used, fits = look(o, n or 0)
  o.before, o.used, o.banned, o.held_now, o.wait, o.reset = 0, used, 1, 0, 0, o.ban_end - o.now
  if n then o.wait = fits == NEVER and NEVER or math.max(o.ban_end, fits) - o.now end
end
local function done(o, before, held)
  if o.strikes > 0 and left(o) == 0 then o.strikes = 0 end
  if banned(o) then
    answer_banned(o)
    o.before = before
  else
    answer(o, before, (look(o, 0)), 0)
  end
  o.held_now, o.changed = held and 1 or 0, true
  o.s, o.till = save(o)
end
local function empty(o)
  if o.held and ended(o, o.now) < o.count then
    begin_holding(o)
    o.row.aged.empty(o.base)
    finish_holding(o)
  elseif o.kind == 11 and o.plain.count > 0 then
    o.plain.raw = nil
  else
    if o.plain and o.plain.set then call('DEL', o.plain.set, o.plain.hash) end
    anew(o)
  end
end
local function drop_ended(o)
  if o.plain and o.row.expires(o.plain) <= o.now then o.plain.raw = nil end
end
local function strike(o, before, n)
  local count = math.min(left(o) + 1, 100)
  local d, most = o.ban_for, o.ban_most
  for _ = 2, count do
    if d >= most or o.factor < 2 then break end
    if d > floor(most / o.factor) then d = most else d = d * o.factor end
  end
  d = math.min(d, most)
  o.strikes, o.ban_end, o.ban_length = count, math.min(o.now + d, LAST), d
  empty(o)
  o.changed, o.s, o.till = true, save(o)
  answer_banned(o, n)
  o.before, o.struck = before, true
end
local function check(o, n)
  if banned(o) then return answer_banned(o, n) end
  local used, fits = look(o, n)
  answer(o, used, used, fits)
end
local function take(o)
  local n = o.n
  if banned(o) then return answer_banned(o, n) end
  local before, fits = look(o, n)
  if n == 0 or fits ~= 0 then
    if n > 0 and o.bans then return strike(o, before, n) end
    return answer(o, before, before, fits)
  end
  n = math.min(n, MAX)
  local held = o.id and o.most and hold(o, n, o.id, o.now, math.min(o.now + o.length, LAST))
  if o.id and o.most then drop_ended(o) end
  if not held then add(o, n) end
  done(o, before, held)
end
local function over(o, n, fits, from)
  if fits == 0 then return false end
  if o.kind == 11 then return from and o.plain.sum + n > o.plain.quota end
  return not o.held or not fits_holding(o, o.now, n)
end
local function record(o, from, till, quiet)
  local n = o.n
  if banned(o) then return answer_banned(o) end
  local before, fits = look(o, n)
  if n == 0 then return answer(o, before, before, 0) end
  if o.bans and not quiet and over(o, n, fits, from and o.id) then return strike(o, before) end
  n = math.min(n, MAX)
  local held = from and o.id and o.most and till > o.now and hold(o, n, o.id, math.min(from, o.now), till)
  if not held then add(o, n) end
  done(o, before, held)
end
local function count_denied(o)
  local own = o.wait
  if not banned(o) then
    record(o, nil, nil, true)
  else
    local seen = o.held and o.seen or o.kind == 11 and o.plain.now or 0
    o.now = math.max(math.min(now, LAST), o.ban_end - o.ban_length, seen)
    if o.n > 0 then
      o.ban_end, o.changed = math.min(o.now + o.ban_length, LAST), true
      o.s, o.till = save(o)
    end
    answer_banned(o)
  end
  o.wait = own
  if own == 0 then return end
  local before, used, reset, is, held = o.before, o.used, o.reset, o.banned, o.held_now
  check(o, o.n)
  if o.wait == 0 then o.wait = own end
  o.before, o.used, o.reset, o.banned, o.held_now = before, used, reset, is, held
end
local function refund(o)
  local n = o.n
  if o.all then o.strikes = 0 end
  if banned(o) then return answer_banned(o) end
  local before = look(o, 0)
  if n == 0 then return answer(o, before, before, 0) end
  sub(o, o.held and math.min(n, MAX) or n)
  done(o, before, false)
end
local function finish(o, ask)
  local before = look(o, 0)
  if o.id and ask == RENEW and renew(o, o.id, o.most and math.min(o.now + o.length, LAST)) or
    o.id and ask == CANCEL and settle(o, o.id, 0) or
    o.id and ask == SETTLE and settle(o, o.id, not o.all and o.n or nil) then
    return done(o, before, true)
  end
  if banned(o) then return answer_banned(o) end
  answer(o, before, before, 0)
end
local function give_back(o)
  if banned(o) then return answer_banned(o) end
  local before = look(o, 0)
  if expires(o) <= o.now or o.strikes > 0 and o.from <= o.ban_end - o.ban_length then
    return answer(o, before, before, 0)
  end
  sub_at(o, o.from, math.min(o.n, MAX))
  done(o, before, false)
end
local function open(v, k)
  local o, flags = {strikes = 0, ban_end = 0, ban_length = 0, now = math.min(now, LAST), held = false}
  o.kind, o.ask, flags, o.n, o.precision, p = up('<BBBI7I2', args, p)
  o.row, o.k = kinds[o.kind], k + 1
  o.denied, o.quiet, o.sure = has_flag(flags, COUNT_DENIED), has_flag(flags, QUIET), has_flag(flags, SURE)
  o.bans, o.keep, o.all = has_flag(flags, BANS), has_flag(flags, KEEPS) and 1 or 0, has_flag(flags, ALL)
  if o.bans then
    o.ban_for, o.factor, o.ban_most, o.forget, p = up('<I7I7I7I7', args, p)
  end
  if has_flag(flags, HOLDS) then
    o.length, o.most, p = up('<I7I2', args, p)
    o.holds = o.kind ~= 11
  end
  if has_flag(flags, NAMED) then
    o.named = true
    o.id, o.from, o.till, p = up('<c12I7I7', args, p)
    if o.id == string.rep('\0', 12) then o.id = nil end
  end
  o.p, o.around = p, o.bans or o.holds
  local version, kind = 1, o.kind
  if v then version, kind = string.byte(v, 1, 2) end
  if version == 1 and kind == 13 then
    o.around = true
    if o.bans then
      o.strikes, o.ban_end, o.ban_length = up('<BI7I7', v, 3)
      o.now = math.max(o.now, o.ban_end - o.ban_length)
    end
    v = #v > 17 and cut(v, 18)
    version, kind = 1, o.kind
    if v then version, kind = string.byte(v, 1, 2) end
  end
  if version ~= 1 then return nil end
  if kind == o.kind then
    o.plain = o.row.open(v, 1, o.now, o.k)
    o.plain.most = o.most
    o.now = o.plain.now
    if o.around and o.row.expires(o.plain) <= o.now then o.plain.raw = nil end
    return o
  end
  if kind ~= 12 or string.byte(v, 3) ~= o.kind or not o.row.aged then return nil end
  o.around, o.held = true, true
  local _, s
  _, _, _, o.count, o.sum, o.seen, o.kept, s = up('<BBBI2I7I7I7', v)
  o.now = math.max(o.now, o.seen)
  local base = s + o.count * HOLD_SIZE
  o.list = cut(v, s, base - 1)
  o.base = o.row.aged.open(base <= #v and cut(v, base), o.now, o.seen)
  local alive = o.count > 0 and hold_at(o, #o.list - HOLD_SIZE + 1) > o.now
  if not alive and expires_holding(o) <= o.now then anew(o) end
  return o
end
local ops, k = {}, first
for i = 1, total do
  local key = KEYS[k]
  local v = state
  if i > 1 then v = try('GET', key) end
  if type(v) == 'table' then
    if not string.find(v.err, 'WRONGTYPE', 1, true) then return v end
    return pk('<BI7I4I2', FOREIGN, now, k - first + 1, #v.err) .. v.err
  end
  local o = open(v, k)
  if not o then
    return pk('<BI7I4I2', BROKEN, now, k - first + 1, math.min(#v, 2)) .. cut(v, 1, 2)
  end
  if off then return pk('<BI7I2I7', CLOCK, now, i, off) end
  k = k + (o.row.keys or 1)
  ops[i], o.key = o, key
end
local admitted, found = true, false
for i = 1, total do
  local o = ops[i]
  if o.ask == ENFORCE and total > 1 then
    check(o, o.n)
    if o.wait ~= 0 then admitted = false end
  end
end
for i = 1, total do
  local o = ops[i]
  local ask = o.ask
  if ask == LOOK then
    check(o, o.n)
  elseif ask == RECORD then
    if o.most and (o.id or o.quiet) then drop_ended(o) end
    record(o, o.id and o.from, o.till, o.quiet)
  elseif ask == REFUND then
    refund(o)
  elseif ask >= SETTLE and ask <= RENEW then
    finish(o, ask)
    found = found or ask == CANCEL and o.held_now == 1
  elseif ask == ALWAYS then
    if o.id and o.most then drop_ended(o) end
    record(o, now, o.most and now + o.length, false)
  elseif ask == ENFORCE and total == 1 then
    take(o)
    if o.denied and o.wait ~= 0 then count_denied(o) end
  else
    if ask ~= ENFORCE then check(o, o.n) end
    local denied = ask == ONLY_LOOK or o.wait ~= 0 or ask == ENFORCE and not admitted
    if not denied or o.wait ~= 0 and o.bans then take(o) end
    if denied and o.denied then count_denied(o) end
  end
end
local reply = {pk('<BI7', AROUND, now)}
for i = 1, total do
  local o = ops[i]
  if o.ask == CANCEL and o.named and (found or o.sure) and o.held_now == 0 and not o.most and o.n > 0 then
    give_back(o)
  end
  if o.changed then
    local s, till = o.s or '', o.till or 0
    if o.strikes > 0 then
      s = pk('<BBBI7I7', 1, 13, o.strikes, o.ban_end, o.ban_length) .. s
      till = math.max(till, math.min(o.ban_end + o.strikes * o.forget, MAX))
    end
    if s == '' then
      call('DEL', o.key)
    else
      local ms = floor(math.max(till - now + 999, 0) / 1000) + slack
      call('SET', o.key, s, 'PX', ms)
      if o.plain and o.plain.set then
        call('PEXPIRE', o.plain.set, ms)
        call('PEXPIRE', o.plain.hash, ms)
      end
    end
  end
  local flags = o.held_now + 2 * o.banned + ((o.held or o.strikes > 0) and 4 or 0) + (o.struck and 8 or 0)
  reply[i + 1] = pk('<I7I7I7I7B', o.used, o.before, o.wait, o.reset, flags)
end
return table.concat(reply)
end
local replies, done, next_first = {}, 0, 1
local function go_on()
  local args, own_keys, total, deadline = ARGV[2], common_keys, common_total, 0
  for turn = done + 1, steps do
    done = turn
    if not alike then
      local which
      deadline, own_keys, which = up('<I7I2B', plan, turn * 10 + 7)
      args = ARGV[which]
      total = up('<I2', args)
    end
    local first = next_first
    next_first = first + own_keys
    local reply
    if deadline > 0 and now > deadline then
      reply = pk('<BI7', STALE, now)
    else
      reply = decide(args, first, total)
      if type(reply) == 'table' then error(reply) end
    end
    replies[turn] = reply
  end
end
while done < steps do
  local ok, failed = pcall(go_on)
  if not ok then
    if type(failed) == 'table' then failed = failed.err end
    failed = tostring(failed)
    replies[done] = pk('<BI7I4I2', FAILED, now, 1, #failed) .. failed
  end
end
return table.concat(replies)
