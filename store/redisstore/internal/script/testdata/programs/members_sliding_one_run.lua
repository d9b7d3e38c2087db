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
local function open_members_sliding(v, _, at, k)
  local quota, w
  quota, w, p = up('<I7I7', args, p)
  return open_members(7, v, at, k, quota, w, 0)
end
kinds[7] = {
  open = open_members_sliding, look = look_members, add = add_members, save = save_members, expires = expires_members,
  keys = 3, parts = true,
}
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
