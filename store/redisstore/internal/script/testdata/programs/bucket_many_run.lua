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
local kinds = {}
local off = false
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
