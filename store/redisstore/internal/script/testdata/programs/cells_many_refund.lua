local up, pk, call, try, KEYS, ARGV = struct.unpack, struct.pack, redis.call, redis.pcall, KEYS, ARGV
local MAX = 9007199254740991
local NEVER = 9007199254740992
local LOOK, RECORD = 0, 3
local STALE = 1
local cut, floor, type = string.sub, math.floor, type
local ENFORCE, SHADOW, REFUND = 1, 2, 4
local DONE, CLOCK, BROKEN, FOREIGN, FAILED = 0, 2, 3, 4, 5
local args, p, first = ARGV[1], 19, 1
local now, deadline, _, total = up('<I7I7I2I2', args)
local slack = 1
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
else
  slack = 3600000
end
if deadline > 0 and now > deadline then return pk('<BI7', STALE, now) end
local kinds = {}
local off = false
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
