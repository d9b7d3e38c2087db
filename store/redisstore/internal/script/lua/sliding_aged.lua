-- A sliding window of a key that has holds is a log of pairs, each a date and the
-- hits of that date, so that hits can be dated between others. State: all hits,
-- the excess, the pairs, oldest first.
local function pair(o, i)
  return up('<I7I7', o.v, o.s + i * 14 - 14)
end

local function clear_dated(o)
  o.v, o.s, o.n, o.hits, o.excess = '', 1, 0, 0, 0
end

-- splice replaces so many pairs from the i-th on.
local function splice(o, i, gone, pairs)
  local s = o.s + (i - 1) * 14
  o.v = cut(o.v, o.s, s - 1) .. pairs .. cut(o.v, s + gone * 14, o.s + o.n * 14 - 1)
  o.s, o.n = 1, #o.v / 14
  if o.n == 0 then clear_dated(o) end
end

-- inside returns how many pairs have left at t, and the hits of the others.
local function inside_dated(o, t)
  local used, edge, s = o.hits, t - o.w, o.s
  for i = 1, o.n do
    local date, hits
    date, hits, s = up('<I7I7', o.v, s)
    if date > edge then return i - 1, used end
    used = used - hits
  end
  return o.n, 0
end

local function expire_dated(o)
  local gone, used = inside_dated(o, o.now)
  if gone == o.n then
    clear_dated(o)
  elseif gone > 0 then
    o.s, o.n, o.hits, o.excess = o.s + gone * 14, o.n - gone, used, 0
  end
end

local function book_dated(o, at, _, n)
  expire_dated(o)
  if at + o.w <= o.now then return end
  n = math.min(n, MAX - o.hits)
  o.hits = o.hits + n
  local i, date, hits = o.n, nil, 0
  while i > 0 do
    date, hits = pair(o, i)
    if date <= at then break end
    i = i - 1
  end
  if i > 0 and date == at then
    splice(o, i, 1, pk('<I7I7', at, hits + n))
  else
    splice(o, i + 1, 0, pk('<I7I7', at, n))
  end
end

-- book_all books what hits has by the instants of takes, as book_dated does one after the other,
-- and makes one string of the pairs. All hits are at most MAX.
local function book_all(o, hits)
  expire_dated(o)
  local ats, sum = {}, o.hits
  for at, n in pairs(hits) do
    if at + o.w > o.now then ats[#ats + 1], sum = at, sum + n end
  end
  if #ats == 0 then return end
  table.sort(ats)
  local i, next_at = o.n, 1
  while i > 0 and pair(o, i) >= ats[1] do i = i - 1 end
  local out = {cut(o.v, o.s, o.s + i * 14 - 1)}
  for j = i + 1, o.n + 1 do
    local date, n = NEVER, 0
    if j <= o.n then date, n = pair(o, j) end
    while next_at <= #ats and ats[next_at] <= date do
      local at = ats[next_at]
      if at == date then n = n + hits[at] else out[#out + 1] = pk('<I7I7', at, hits[at]) end
      next_at = next_at + 1
    end
    if j <= o.n then out[#out + 1] = pk('<I7I7', date, n) end
  end
  o.v, o.s, o.hits = table.concat(out), 1, sum
  o.n = #o.v / 14
end

-- forget_dated moves pairs past the bound to the excess, the oldest first, as long as
-- what stays fills it. Where there were more hits before, as many stay.
local function forget_dated(o, before)
  local most = math.max(o.bound, before)
  while o.n > 1 and o.hits > most do
    local date, hits = pair(o, 1)
    local gone = math.min(hits, o.hits - most)
    if gone < hits and before <= o.bound then return end
    o.hits, o.excess = o.hits - gone, math.min(o.excess + gone, MAX)
    if gone < hits then
      splice(o, 1, 1, pk('<I7I7', date, hits - gone))
    else
      o.s, o.n = o.s + 14, o.n - 1
    end
  end
end

local function sub_dated(o, n)
  expire_dated(o)
  if o.n == 0 then return end
  local eaten = math.min(n, o.excess)
  o.excess, n = o.excess - eaten, math.min(n - eaten, o.hits)
  o.hits = o.hits - n
  while n > 0 do
    local date, hits = pair(o, o.n)
    if hits > n then
      splice(o, o.n, 1, pk('<I7I7', date, hits - n))
      return
    end
    o.n, n = o.n - 1, n - hits
  end
  if o.n == 0 then clear_dated(o) end
end

-- sub_at_dated gives back hits of a take: with groups those with the first dates from at on, see
-- subAt in window/pair_log.go.
local function sub_at_dated(o, at, n)
  expire_dated(o)
  local i, exact = 1, o.size == 1
  while i <= o.n and pair(o, i) < at do i = i + 1 end
  if i > o.n or at + o.w <= o.now then return end
  local date, hits = pair(o, i)
  if exact and date > at then return end
  if exact then n = math.min(n, hits) end
  local eaten = math.min(n, o.excess) -- the hits stand for those that were dropped
  o.excess, n = o.excess - eaten, n - eaten
  while n > 0 and i <= o.n do
    date, hits = pair(o, i)
    local part = math.min(n, hits)
    n, o.hits = n - part, o.hits - part
    splice(o, i, 1, hits > part and pk('<I7I7', date, hits - part) or '')
  end
end

-- tighten joins neighbours when there are too many pairs, under the newer date:
-- not across the instant of a hold.
local function tighten(h)
  local o = h.base
  expire_dated(o)
  if o.n <= 2 * o.precision then return end
  local ats, next_at = {}, 1
  for i = 1, h.count do ats[i] = up('<I7', h.list, h.first + (i - 1) * HOLD_SIZE + AT) end
  table.sort(ats)
  local function between(from, to) -- each from is later than the one before
    while ats[next_at] and ats[next_at] < from do next_at = next_at + 1 end
    return ats[next_at] and ats[next_at] < to
  end
  local size = math.max(o.size, floor((o.hits - 1) / o.precision) + 1) -- larger after a larger quota
  local out, date, hits = {}, pair(o, 1)
  for i = 2, o.n do
    local d, x = pair(o, i)
    if x <= size - hits and not between(date, d) then
      date, hits = d, hits + x
    else
      out[#out + 1] = pk('<I7I7', date, hits)
      date, hits = d, x
    end
  end
  out[#out + 1] = pk('<I7I7', date, hits)
  o.v, o.s, o.n = table.concat(out), 1, #out
end

local function leaves_dated(o, at)
  return at + o.w
end

-- adopt_dated turns a log of groups into one of pairs.
local function adopt_dated(o)
  local b = {
    now = o.now, quota = o.quota, bound = o.bound, w = o.w, size = o.size, precision = o.precision,
    v = '', s = 1, n = 0, hits = 0, excess = o.excess,
  }
  local out, last, filled = {}, nil, 0
  for i = 1, o.k do
    local date, n = o.newest, o.fill
    if i < o.k then date, n = up('<I7', o.v, o.s + i * 7 - 7), o.group end
    if date ~= last and last then
      out[#out + 1] = pk('<I7I7', last, filled)
      filled = 0
    end
    last, filled = date, filled + n
  end
  if last then out[#out + 1] = pk('<I7I7', last, filled) end
  b.v, b.n = table.concat(out), #out
  b.hits = o.k > 0 and math.min((o.k - 1) * o.group + o.fill, MAX) or 0
  return b
end

kinds[1].sub_at = function(o, at, n) -- none of a log with groups, where several hits share a date
  if o.now - o.w >= at or o.k == 0 or o.group > 1 then return true end
  local kept, gone = {}, 0
  for i = o.k, 1, -1 do
    local date = i == o.k and o.newest or up('<I7', o.v, o.s + i * 7 - 7)
    local given = date == at and gone < n
    if given then gone = gone + 1 end
    if not given or o.excess > 0 then
      table.insert(kept, 1, date)
      if given then o.excess = o.excess - 1 end -- the hit stands for one that was dropped
    end
  end
  if gone == 0 then return true end
  o.k = #kept
  if o.k == 0 then return end
  o.newest = kept[o.k]
  for i = 1, o.k - 1 do kept[i] = pk('<I7', kept[i]) end
  kept[o.k] = nil
  o.v, o.s = table.concat(kept), 1
end

keep_raw(kinds[1])
kinds[1].aged = {
  open = function(v, at)
    local o = {now = at, v = '', s = 1, n = 0, hits = 0, excess = 0}
    o.quota, o.w, o.size, o.bound, o.precision, p = up('<I7I7I7I7I2', args, p)
    if v then
      o.hits, o.excess = up('<I7I7', v)
      o.v, o.s, o.n = v, 15, (#v - 14) / 14
    end
    return o
  end,
  adopt = adopt_dated,
  dated = true,
  used = function(o, t)
    local _, used = inside_dated(o, t)
    return used
  end,
  leaving = function(o, t)
    local i = inside_dated(o, t)
    local s = o.s + i * 14
    return function()
      if i == o.n then return nil end
      local date, hits
      date, hits, s = up('<I7I7', o.v, s)
      i = i + 1
      return date + o.w, hits
    end
  end,
  begin = function() end,
  add = function(o, n)
    expire_dated(o)
    local before = o.hits
    book_dated(o, o.now, nil, n)
    forget_dated(o, before)
  end,
  sub = sub_dated,
  sub_at = sub_at_dated,
  empty = clear_dated,
  book = book_dated,
  book_all = book_all,
  count = function(o) -- before a forget
    expire_dated(o)
    return o.hits
  end,
  forget = forget_dated,
  tighten = tighten,
  leaves = leaves_dated,
  lasts = leaves_dated,
  expires = function(o) return o.n > 0 and pair(o, o.n) + o.w or 0 end,
  trim = function() end,
  save = function(o)
    return o.n > 0 and pk('<I7I7', o.hits, o.excess) .. cut(o.v, o.s, o.s + o.n * 14 - 1) or nil
  end,
}
