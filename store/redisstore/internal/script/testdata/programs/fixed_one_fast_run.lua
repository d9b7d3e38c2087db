local up, pk, cut, floor = struct.unpack, struct.pack, string.sub, math.floor
local call, try, KEYS, ARGV, type = redis.call, redis.pcall, KEYS, ARGV, type
local MAX = 9007199254740991
local NEVER = 9007199254740992
local LOOK, ENFORCE, SHADOW, RECORD, REFUND = 0, 1, 2, 3, 4
local DONE, STALE, CLOCK, BROKEN, FOREIGN, FAILED = 0, 1, 2, 3, 4, 5
local known, its_ask, its_n, its_quota, its_w
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
  its_ask, its_n, its_quota, its_w = up('<BI7I7I7', args, p + 1)
  known = args
end
local state = states[KEYS[first]]
if state then states[KEYS[first]] = nil else state = try('GET', KEYS[first]) end
do
  if state and #state == 16 then
    local version, kind, mark, used = up('<BBI7I7', state)
    local at = mark > now and mark or now
    local till = mark + its_w
    if version == 1 and kind == 3 and at < till and used + its_n <= MAX then
      if its_ask ~= RECORD and its_n > 0 and used + its_n > its_quota then
        return DONE, used, used, its_n > its_quota and NEVER or till - at, till - at
      end
      if its_ask == LOOK then
        return DONE, used, used, 0, till - at
      end
      call('SETRANGE', KEYS[first], '9', pk('<I7', used + its_n))
      return DONE, used + its_n, used, 0, till - at
    end
  elseif not state and its_ask ~= LOOK and its_n <= its_quota and its_n <= MAX then
    call('SET', KEYS[first], pk('<BBI7I7', 1, 3, now, its_n), 'PX', floor((its_w + 999) / 1000) + slack)
    return DONE, its_n, 0, 0, its_w
  end
end
local kinds = {}
local off = false
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
local function open_fixed(v, i, at)
  local quota, w
  quota, w, p = up('<I7I7', args, p)
  return open_period(3, v, i, at, quota, w, at)
end
kinds[3] = {open = open_fixed, look = look_period, add = add_period, save = save_period, expires = expires_period}
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
