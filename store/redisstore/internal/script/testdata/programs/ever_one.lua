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
local state = try('GET', KEYS[first])
local kinds = {}
local off = false
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
local kind, ask, n
kind, ask, n, p = up('<BBI7', args, p)
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
    call('SET', KEYS[first], s, 'PX', ms)
    if o.set then
      call('PEXPIRE', o.set, ms)
      call('PEXPIRE', o.hash, ms)
    end
  else
    call('DEL', KEYS[first])
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
