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
local state = try('GET', KEYS[first])
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
