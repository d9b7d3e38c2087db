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
local all = {}
if #KEYS <= 2000 and 2 * repeats <= #KEYS then
  all = try('MGET', unpack(KEYS))
  if all.err then all = {} end
  for i = 1, repeats do all[up('<I2', plan, #plan + 1 - 2 * i)] = false end
end
local writes = {
  false, false, false, false, false, false, false, false, false,
  false, false, false, false, false, false, false, false, false,
}
local function common_sliding(state, n, args, q)
  local quota, w, size = up('<I7I7I7', args, q)
  local step = (w - w % 8) / 8 + 1
  if state == false then
    if n > size or n > quota then return end
    local ms = step - now % step + w + 999
    return 0, 0, 0, pk('<I4I7I7I7I7I7', 65793, now, now, n, size, 0), nil, (ms - ms % 1000) / 1000 + slack, w
  end
  if #state < 39 then return end
  local kind, newest, oldest, fill, group, excess = up('<I4I7I7I7I7I7', state)
  local at = newest > now and newest or now
  local edge = at - w
  if kind % 65536 ~= 257 or group ~= size or newest <= edge then return end
  local groups, dates = (kind - 257) / 65536, 40
  if oldest <= edge then
    if group > 1 or #state ~= 32 + 7 * groups then return end
    for _ = 1, 4 do
      if oldest > edge then break end
      dates, groups, excess = dates + 7, groups - 1, 0
      oldest = groups > 1 and up('<I7', state, dates) or newest
    end
    if oldest <= edge then return end
  end
  local used, reset = (groups - 1) * group + fill, newest + w - at
  if used >= MAX then return end
  local over = used - (quota - n)
  if n > 0 and over > 0 then
    if n <= quota and over > group then return end
    return used, n > quota and NEVER or oldest + w - at, reset
  end
  local tick = at - at % step
  local ms = tick + step + w - now + 999
  ms = (ms - ms % 1000) / 1000 + slack
  if dates == 40 and fill + n <= group then
    local head = pk('<I7I7I7', at, groups > 1 and oldest or at, fill + n)
    return used, 0, reset, head, '4', newest < tick and ms or nil, w
  end
  if group > 1 or n ~= 1 or fill ~= 1 or #state ~= 32 + 7 * (kind - 257) / 65536 then return used, 0, reset end
  local head = pk('<I4I7I7I7I7I7', 65793 + 65536 * groups, at, oldest, 1, 1, excess)
  return used, 0, reset, head .. string.sub(state, dates) .. pk('<I7', newest), nil, ms, w
end
local function common_fixed(state, n, args, q)
  local quota, w = up('<I7I7', args, q)
  if state == false then
    if n > quota or n > MAX then return end
    local ms = w + 999
    return 0, 0, 0, pk('<I2I7I7', 769, now, n), nil, (ms - ms % 1000) / 1000 + slack, w
  end
  if #state ~= 16 then return end
  local kind, mark, used = up('<I2I7I7', state)
  local reset = mark + w - (mark > now and mark or now)
  if kind ~= 769 or reset <= 0 or used + n > MAX then return end
  if n > 0 and used + n > quota then return used, n > quota and NEVER or reset, reset end
  return used, 0, reset, pk('<I7', used + n), '9', nil, reset
end
local function common_bucket(state, n, args, q)
  local cap, quota, length, common = up('<I7I7I7I7', args, q)
  if n == 0 or n > cap then return end
  local whole, cost, step = quota * common, n * length, length * common
  step = (step - step % 8) / 8 + 1
  local part = cost % quota
  local time = (cost - part) / quota
  local d, f, ends, used, reset = 0, 0, nil, 0, 0
  if state then
    if #state ~= 23 then return end
    local kind, till, numerator, denominator = up('<I2I7I7I7', state)
    if kind ~= 1281 or denominator ~= 0 and denominator ~= whole then return end
    d, f, ends = till - now, numerator / common, numerator > 0 and till + 1 or till
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
  local numbers = pk('<I7I7I7', now + d, f * common, f > 0 and whole or 0)
  local tick = now + lasts
  tick = tick - tick % step
  local ms = tick + step - now + 999
  ms = (ms - ms % 1000) / 1000 + slack
  if not ends then return used, 0, reset, pk('<I2', 1281) .. numbers, nil, ms, lasts end
  return used, 0, reset, numbers, '2', ends < tick and ms or nil, lasts
end
local function decide(args, first, total)
  local p = 3
local kinds = {}
local off = false
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
end
  return rawget(rows, code)
end})
local rows, ops, asks, ns, keys, befores, waits = {}, {}, {}, {}, {}, {}, {}
local admitted, k = true, first
for i = 1, total do
  local kind, ask, n
  kind, ask, n, p = up('<BBI7', args, p)
  local key = KEYS[k]
  local v = try('GET', key)
  if v then
    if type(v) == 'table' then
      if not string.find(v.err, 'WRONGTYPE', 1, true) then return v end
      return pk('<BI7I4I2', FOREIGN, now, k - first + 1, #v.err) .. v.err
    end
    local version, held = string.byte(v, 1, 2)
    if version ~= 1 or held ~= kind then
      return pk('<BI7I4I2', BROKEN, now, k - first + 1, math.min(#v, 2)) .. cut(v, 1, 2)
    end
  end
  local row = kinds[kind]
  local o = row.open(v, 1, now, k + 1)
  k = k + (row.keys or 1)
  if off then return pk('<BI7I2I7', CLOCK, now, i, off) end
  local before, wait = row.look(o, ask < RECORD and n or ask > REFUND and n or 0)
  if wait ~= 0 and ask % 8 == ENFORCE then admitted = false end
  rows[i], ops[i], asks[i], ns[i], keys[i], befores[i], waits[i] = row, o, ask, n, key, before, wait
end
local reply = {pk('<BI7', DONE, now)}
for i = 1, total do
  local row, o, ask, n, key, before, wait = rows[i], ops[i], asks[i], ns[i], keys[i], befores[i], waits[i]
  local role, changed, took, again = ask % 8, false, false, false
  local counted = n > MAX and MAX or n
  if role == REFUND then
    changed = not row.sub(o, n)
  elseif role == RECORD or wait == 0 and (role == SHADOW or role == ENFORCE and admitted) then
    row.add(o, counted)
    changed = true
    took = role ~= RECORD
  elseif ask >= 8 then
    row.add(o, counted)
    changed, again = true, wait ~= 0
  end
  if changed then
    local s, till = row.save(o)
    if s then
      local ms = floor(math.max(till - now + 999, 0) / 1000) + slack
      call('SET', key, s, 'PX', ms)
      if o.set then
        call('PEXPIRE', o.set, ms)
        call('PEXPIRE', o.hash, ms)
      end
    else
      call('DEL', key)
    end
    if again then
      local _, later = row.look(o, n)
      if later ~= 0 then wait = later end
    end
  end
  if wait ~= 0 and wait ~= NEVER then wait = wait - o.now end
  local used = took and not row.parts and before + n
  if not used or used > MAX then used = row.look(o, 0) end
  reply[i + 1] = pk('<I7I7I7I7', used, before, wait, math.max(row.expires(o) - o.now, 0))
end
return table.concat(reply)
end
local numbers, its_waits, waited = {}, {}, false
local replies, slow, done, next_first = {}, 0, 0, 1
local function go_on()
  local call, KEYS, all, numbers, now = call, KEYS, all, numbers, now
  local args, own_keys, total, deadline = ARGV[2], common_keys, common_total, 0
  for turn = done + 1, steps do
    done = turn
    if not alike then
      local which
      deadline, own_keys, which = up('<I7I2B', plan, turn * 10 + 7)
      args = ARGV[which]
      total = up('<I2', args)
    end
    local first, p = next_first, 3
    next_first = first + own_keys
    local reply
    if deadline > 0 and now > deadline then
      reply = pk('<BI7', STALE, now)
    else
local all_fit, waiting, decided, next_op, some = true, false, 0, p, 0
if total <= 1000 then
  for i = 1, total do
    local k = first + i - 1
    local state = all[k] or try('GET', KEYS[k])
    if type(state) == 'table' then break end
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
for i = 2, some, 6 do
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
  waited = waited or waiting
else
  reply = decide(args, first, total)
end
    end
    if reply then
      if type(reply) == 'table' then error(reply) end
      replies[turn], slow = reply, slow + 1
    end
  end
end
while done < steps do
  local ok, failed = pcall(go_on)
  if not ok then
    if type(failed) == 'table' then failed = failed.err end
    failed = tostring(failed)
    replies[done], slow = pk('<BI7I4I2', FAILED, now, 1, #failed) .. failed, slow + 1
  end
end
local ALL, QUICK, ADMITTED = 7, 8, 9
if slow == 0 and not waited then
  return pk('<BI7' .. string.rep('dd', #KEYS), ADMITTED, now, unpack(numbers, 1, 2 * #KEYS))
end
local function three(from, to)
  local list, n = {}, 0
  for i = from, to do
    list[n + 1], list[n + 2], list[n + 3] = numbers[2 * i - 1], its_waits[i] or 0, numbers[2 * i]
    n = n + 3
  end
  return list, n
end
if slow == 0 then
  local list, n = three(1, #KEYS)
  return pk('<BI7' .. string.rep('I7', n), ALL, now, unpack(list, 1, n))
end
local first = 1
for i = 1, steps do
  local next_one = first + (alike and common_keys or up('<I2', plan, i * 10 + 14))
  if not replies[i] then
    local list, n = three(first, next_one - 1)
    replies[i] = pk('<BI7' .. string.rep('I7', n), QUICK, now, unpack(list, 1, n))
  end
  first = next_one
end
return table.concat(replies)
