local up, pk, cut, floor = struct.unpack, struct.pack, string.sub, math.floor
local call, try, KEYS, ARGV, type = redis.call, redis.pcall, KEYS, ARGV, type
local MAX = 9007199254740991
local NEVER = 9007199254740992
local LOOK, ENFORCE, SHADOW, RECORD, REFUND = 0, 1, 2, 3, 4
local DONE, STALE, CLOCK, BROKEN, FOREIGN, FAILED = 0, 1, 2, 3, 4, 5
local known, its_ask, its_n, its_cap, its_quota, its_length, its_common, its_step
local states = {}
if #KEYS <= 2000 and KEYS[1] ~= KEYS[2] then
  local all = try('MGET', unpack(KEYS))
  if not all.err then
    for i = 1, #KEYS do states[KEYS[i]] = all[i] end
  end
end
local plan = ARGV[1]
local now, soonest = up('<I7I7', plan)
local steps = floor((#plan - 14) / 10)
local slack = 1
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
else
  slack = 3600000
end
local args, p, first, next_first, total, own_keys = '', 3, 1, 1, 0, 0
local alike = #ARGV == 2 and steps > 0 and now <= soonest
if alike then
  args, own_keys = ARGV[2], up('<I2', plan, 22)
  total = up('<I2', args)
end
local function decide(turn)
  local deadline = 0
  if not alike then
    local which
    deadline, own_keys, which = up('<I7I2B', plan, turn * 10 + 5)
    args = ARGV[which]
    total = up('<I2', args)
  end
  p, first, next_first = 3, next_first, next_first + own_keys
  if deadline > 0 and now > deadline then return pk('<BI7', STALE, now) end
if known ~= args then
  its_ask, its_n, its_cap, its_quota, its_length, its_common = up('<BI7I7I7I7I7', args, p + 1)
  known, its_step = args, floor(its_length * its_common / 8) + 1
end
local state = states[KEYS[first]]
if state then states[KEYS[first]] = nil else state = try('GET', KEYS[first]) end
if state and #state == 23 then
  local version, kind, till, part, whole = up('<BBI7I7I7', state)
  local same = whole == 0 or whole == its_quota * its_common
  if version == 1 and kind == 5 and same and its_ask ~= RECORD and its_n > 0 and its_n <= its_cap then
    local d, f = till - now, part / its_common
    if d < 0 then d, f = 0, 0 end
    local room = its_cap * its_length - f - d * its_quota
    if d <= MAX / its_quota and room >= 0 then
      local used = (d > 0 or f > 0) and floor((d * its_quota + f - 1) / its_length) + 1 or 0
      local after = room - its_n * its_length
      if after < 0 then
        local free = (its_cap - its_n) * its_length - f
        free = free < 0 and -1 or floor(free / its_quota)
        return DONE, used, used, d - free, f > 0 and d + 1 or d
      end
      if its_ask == LOOK then
        return DONE, used, used, 0, f > 0 and d + 1 or d
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
      return DONE, used + its_n, used, 0, lives
    end
  end
end
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
local kind, ask, n
kind, ask, n, p = up('<BBI7', args, p)
local key = KEYS[first]
if state then
  if type(state) == 'table' then
    if not string.find(state.err, 'WRONGTYPE', 1, true) then return state end
    return pk('<BI7I4I2', FOREIGN, now, 1, #state.err) .. state.err
  end
  local version, held = string.byte(state, 1, 2)
  if version ~= 1 or held ~= kind then
    return pk('<BI7I4I2', BROKEN, now, 1, math.min(#state, 2)) .. cut(state, 1, 2)
  end
end
local row = kinds[kind]
local o = row.open(state, 1, now, first + 1)
if off then return pk('<BI7I2I7', CLOCK, now, 1, off) end
local before, wait = row.look(o, ask < RECORD and n or ask > REFUND and n or 0)
local role, changed, took, again = ask % 8, false, false, false
local counted = n > MAX and MAX or n
if role == REFUND then
  changed = not row.sub(o, n)
elseif role == RECORD or wait == 0 and role ~= LOOK then
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
return pk('<BI7I7I7I7I7', DONE, now, used, before, wait, math.max(row.expires(o) - o.now, 0))
end
local ALL = 7
local replies, numbers, quick, done = {}, {}, 0, 0
local function go_on()
  for i = done + 1, steps do
    done = i
    local reply, used, before, wait, reset = decide(i)
    if used then
      local n = 4 * i
      numbers[n - 3], numbers[n - 2], numbers[n - 1], numbers[n] = used, before, wait, reset
      quick = quick + 1
    else
      if type(reply) == 'table' then error(reply) end
      replies[i] = reply
    end
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
if quick == steps then
  return pk('<BI7' .. string.rep('I7I7I7I7', steps), ALL, now, unpack(numbers, 1, 4 * steps))
end
if quick > 0 then
  for i = 1, steps do
    local n = 4 * i
    if not replies[i] then
      replies[i] = pk('<BI7I7I7I7I7', DONE, now, numbers[n - 3], numbers[n - 2], numbers[n - 1], numbers[n])
    end
  end
end
return table.concat(replies)
