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
