-- Distinct members, the one used last at the end. State: version, kind, mark
-- of the period (0 in a sliding window), FAR or NEAR; then 25 bytes a member: fingerprint,
-- date, uses. Without FAR and NEAR it is the state of an earlier release, which kept 64 bits
-- of a fingerprint, and counts as none.
--
-- Before them stand, if members were dropped that are still inside, 25 bytes with their number, the date
-- of the newest of them, and no uses.
--
-- More than FEW members are kept in a sorted set in addition to the state, by date, and
-- those with more than one use also in a hash. Both hold the 16 bytes of the
-- fingerprints. The score is the date after EPOCH, with room for 16ths of a
-- microsecond, which keep 16 members of one microsecond in order. There can be
-- more only after a clock was set back; those leave in any order.
--
-- With 64 members both ways cost the same. With 1000 members a call costs 15 µs,
-- and 117 µs if they were in a string. The set takes twice the memory of the
-- string, and from 128 members on five times.
local NEAR, FAR = 2, 3 -- where the members are: in the string, or in the set
local FEW = 64
local EPOCH = 1577836800000000 -- 2020-01-01
local MOST_OUT = 16 -- members that are removed with a call, while at most one is added
local MOST_USES = 2047
local MOST = 10000 -- members that can be dropped and counted

-- find returns where the member's record starts in the packed state, or nil.
local function find(o)
  local at = string.find(o.v, o.member, o.s, true)
  while at and (at - o.s) % 25 ~= 0 do at = string.find(o.v, o.member, at + 1, true) end
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
  if o.dropped > 0 then used = math.max(used, math.min(used + o.dropped, o.highest)) end
  if n == 0 or used < quota or inside(o) then return used, 0 end
  if quota == 0 then return used, NEVER end
  if not o.sliding then return used, o.mark + o.w end
  if o.count < quota then return used, o.dropped_at + o.w end
  local oldest = o.count - quota -- those that leave before one fits, less one
  if not o.set then return used, up('<I7', o.v, o.s + oldest * 25 + 16) + o.w end
  oldest = call('ZCARD', o.set) - o.count + oldest
  oldest = call('ZRANGE', o.set, oldest, oldest, 'WITHSCORES')
  return used, floor(oldest[2]) + EPOCH + o.w
end

-- score_after returns the score of date, after the member that has score.
local function score_after(score, date)
  if not score or floor(score) ~= date then return date end
  return floor(score + 0.0625) == date and score + 0.0625 or score
end

-- spread moves the packed members into a sorted set and a hash.
local function spread(o)
  call('UNLINK', o.keys[1], o.keys[2])
  o.set, o.hash = o.keys[1], o.keys[2]
  local score
  for s = o.s, #o.v, 25 do
    local member = cut(o.v, s, s + 15)
    local date, uses = up('<I7I2', o.v, s + 16)
    score = score_after(score, date - EPOCH)
    call('ZADD', o.set, score, member)
    if uses > 1 then call('HSET', o.hash, member, uses) end
  end
  o.score, o.v = score, ''
end

-- drop counts n members as dropped, of which the newest has the date at.
local function drop(o, n, at)
  o.count, o.dropped, o.dropped_at = o.count - n, math.min(o.dropped + n, MOST), at
end

local function remove(o, ...)
  call('ZREM', o.set, ...)
  call('HDEL', o.hash, ...)
end

local function add_to_set(o)
  local out = call('ZCARD', o.set) - o.count
  local uses = 1
  if inside(o) then
    uses = math.min((call('HGET', o.hash, o.member) or 1) + 1, MOST_USES)
  else
    local over = o.count > 0 and o.count >= o.highest and 1 or 0 -- all others stay: another limit may have counted them
    if over > 0 then
      local newest = call('ZRANGE', o.set, out, out, 'WITHSCORES')
      drop(o, over, floor(newest[2]) + EPOCH)
      remove(o, newest[1])
    end
    o.count = o.count + 1
  end
  if out > 0 then
    o.mark = math.max(o.edge, 0)
    remove(o, unpack(call('ZRANGE', o.set, 0, math.min(out, MOST_OUT) - 1)))
  end
  o.score, o.newest, o.v, o.first = score_after(o.score, o.now - EPOCH), o.now, '', 1
  call('ZADD', o.set, o.score, o.member)
  if uses > 1 then call('HSET', o.hash, o.member, uses) else call('HDEL', o.hash, o.member) end
end

local function add_members(o)
  if o.count == 0 then
    if o.set then call('UNLINK', o.set, o.hash) end
    o.set, o.v, o.s = nil, '', 1
    if o.dropped == 0 then o.mark = o.next end
  end
  if o.set then return add_to_set(o) end
  local uses, v, s = 1, o.v, o.s
  local at = o.count > 0 and find(o)
  if at then
    uses = math.min(up('<I2', v, at + 23) + 1, MOST_USES)
    v = cut(v, s, at - 1) .. cut(v, at + 25)
  else
    local over = o.count > 0 and o.count >= o.highest and 1 or 0 -- all others stay: another limit may have counted them
    if over > 0 then
      s = s + over * 25
      drop(o, over, up('<I7', v, s - 9))
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
  local head = pk('<BBI7B', 1, o.kind, o.mark, o.set and FAR or NEAR)
  if o.dropped > 0 then head = head .. pk('<I8I8I7I2', o.dropped, 0, o.dropped_at, 0) end
  return head .. cut(o.v, o.first), expires_members(o)
end

-- open_members reads a state. highest is the largest quota under which the key is counted,
-- and next the mark of a period that starts now.
local function open_members(kind, v, at, k, quota, highest, w, next)
  local member
  member, p = up('<c16', args, p)
  local keys = {KEYS[k], KEYS[k + 1]}
  local o = {
    now = at, kind = kind, sliding = kind == 7, quota = quota, highest = highest, w = w, next = next,
    member = member, keys = keys, set = nil, hash = nil, v = '', s = 1, first = 1,
    count = 0, mark = 0, newest = false, score = nil, edge = -NEVER, dropped = 0, dropped_at = 0,
  }
  if not v then return o end
  local mark, far = up('<I7B', v, 3)
  if far < NEAR then return o end
  o.mark = mark
  local count, newest
  local base, dropped, dropped_at = 11, 0, 0
  if #v > 34 and up('<I2', v, 34) == 0 then
    base, dropped, dropped_at = 36, up('<I7', v, 11), up('<I7', v, 27)
  end
  if far == FAR then
    local last = call('ZRANGE', keys[1], -1, -1, 'WITHSCORES')[2]
    if not last then return o end -- evicted without its state
    o.set, o.hash, o.score = keys[1], keys[2], tonumber(last)
    newest = floor(last) + EPOCH
  else
    newest = up('<I7', v, #v - 8)
  end
  o.v, o.s, o.first = v, base, base
  if newest > at then at = newest end
  o.now, o.newest = at, newest
  if kind == 8 then o.next = at end
  if kind ~= 7 then
    if at >= mark + w then return o end
  else
    o.edge = mark > 0 and math.max(at - w, mark) or at - w
  end
  if dropped_at > o.edge then
    o.dropped, o.dropped_at = dropped, dropped_at
  else
    o.first = 11 -- the clock can be set back, so they stay in the state as members do that have left
  end
  if far == FAR then
    o.count = call('ZCOUNT', keys[1], o.edge > -NEVER and o.edge - EPOCH + 1 or '-inf', '+inf')
    return o
  end
  local lo, hi = 0, (#v - base + 1) / 25
  count = hi
  while lo < hi do
    local mid = floor((lo + hi) / 2)
    if up('<I7', v, base + 16 + mid * 25) <= o.edge then lo = mid + 1 else hi = mid end
  end
  o.s, o.count = base + lo * 25, count - lo
  return o
end
