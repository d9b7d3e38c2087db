-- A log of groups of hits. State: version, kind, number of groups, date of the
-- newest group, of the oldest, fill of the newest, hits in a full group,
-- excess; then the dates of all groups but the newest, oldest first. Most takes
-- change only the fixed part.
--
-- The hits of a state can pass MAX by less than a group. No function adds them
-- up: they count in groups, or stop at MAX.
local function look_sliding(o, n)
  local k, fill, group, quota = o.k, o.fill, o.group, o.quota
  local used = k > 0 and (k - 1) * group + fill or 0
  if used > MAX then used = MAX end
  if n == 0 then return used, 0 end
  if n > quota then return used, NEVER end
  -- The oldest groups that have to leave, the last of them perhaps not full.
  local room, leave = quota - n - fill, k
  if room >= 0 then leave = k - 1 - floor(room / group) end
  if leave <= 0 then return used, 0 end
  if leave >= k then return used, o.newest + o.w end
  return used, up('<I7', o.v, o.s + (leave - 1) * 7) + o.w
end

-- regroup puts the hits into groups of another size, each dated by its
-- newest hit. A limit with another precision or largest quota left the state.
local function regroup(o, size)
  local v, s, k = o.v, o.s, o.k
  local dates, filled = {}, 0
  for i = 1, k do
    local hits, date = o.group, i == k and o.newest or up('<I7', v, s + (i - 1) * 7)
    if i == k then hits = o.fill end
    while hits > 0 do
      if filled == 0 then dates[#dates + 1] = date end
      dates[#dates] = date
      local part = math.min(hits, size - filled)
      filled, hits = (filled + part) % size, hits - part
    end
  end
  k = #dates
  o.k, o.fill, o.newest = k, filled == 0 and size or filled, dates[k] or 0
  for i = 1, k do dates[i] = pk('<I7', dates[i]) end
  o.v, o.s = table.concat(dates), 1
end

local function add_sliding(o, n)
  -- Where another limit has counted more hits than the bound, under a larger quota, all groups stay that were full.
  local size, past = o.size, false
  if o.group == size then
    past = o.k > 1 - floor((o.fill - o.bound) / size)
  elseif o.k > 0 then
    past = o.k - 1 > floor((o.bound - o.fill) / o.group)
    if 2 * o.group < size and size <= MAX / 2 then
      size = (floor((size - 1) / o.group) + 1) * o.group -- whole groups join
    elseif o.group > size and (past or size > 1 and o.group < 2 * size) then
      size = o.group
    end
    if o.group ~= size then regroup(o, size) end
  end
  local k, newest, added = o.k, o.newest, 0
  local full = past and math.min(math.max(o.fill == size and k or k - 1, o.precision, 100), floor((MAX - 1) / size) + 1)
  if k > 0 then
    local part = size - o.fill
    if part > n then part = n end
    if part > 0 then
      o.fill, newest, n = o.fill + part, o.now, n - part
    end
  end
  if n > 0 then
    added = floor((n - 1) / size) + 1
    o.fill = n - (added - 1) * size
  end
  -- The oldest groups go, as long as what stays fills the bound.
  local most = full and full + 1 - floor(o.fill / size) or 1 - floor((o.fill - o.bound) / size)
  local old = 0 -- of the groups that go, those in the state before
  if added > most - k then
    local drop = added - (most - k)
    o.excess, old, o.k = math.min(o.excess + drop * size, MAX), math.min(drop, k), most
  else
    o.k = k + added
  end
  o.group = size
  if added == 0 then
    o.newest, o.s = newest, o.s + old * 7
    return
  end
  local kept, tail = 0, ''
  if k > old then kept, tail = k - old, pk('<I7', newest) end
  if o.k - 1 > kept then tail = tail .. string.rep(pk('<I7', o.now), o.k - 1 - kept) end
  o.newest, o.s, o.tail = o.now, o.s + old * 7, tail
end

local function save_sliding(o)
  local k, s, newest, tail = o.k, o.s, o.newest, o.tail
  if k <= 0 then return nil end
  local old = (k - 1) * 7 - #tail -- bytes of dates that come from the state before
  local oldest = newest
  if k > 1 then oldest = old > 0 and up('<I7', o.v, s) or up('<I7', tail) end
  local v = pk('<BBI2I7I7I7I7I7', 1, 1, k, newest, oldest, o.fill, o.group, o.excess)
  v = old > 0 and v .. cut(o.v, s, s + old - 1) .. tail or v .. tail
  o.v, o.s, o.tail = v, 40, ''
  local step = floor(o.w / 8) + 1 -- as in fast_sliding.lua
  return v, (floor(newest / step) + 1) * step + o.w
end

local function expires_sliding(o)
  return o.k > 0 and o.newest + o.w or 0
end

local function open_sliding(v, i, at)
  local quota, w, size, bound, precision
  quota, w, size, bound, precision, p = up('<I7I7I7I7I2', args, p)
  local k, newest, fill, group, excess, s = 0, 0, 0, size, 0, 1
  if v then
    local oldest
    k, newest, oldest, fill, group, excess, s = up('<I2I7I7I7I7I7', v, i + 2)
    if newest > at then at = newest end
    local edge = at - w
    if newest <= edge then
      k, excess = 0, 0
    elseif oldest <= edge then
      -- Group lo is out, group hi is in; mostly only the oldest is out.
      local lo, mid, hi = 1, 2, k
      while hi - lo > 1 do
        if up('<I7', v, s + (mid - 1) * 7) <= edge then lo = mid else hi = mid end
        mid = floor((lo + hi) / 2)
      end
      s, k, excess = s + lo * 7, k - lo, 0
    end
  end
  return {
    now = at, quota = quota, bound = bound, w = w, size = size, precision = precision, v = v, s = s, tail = '',
    k = k, newest = newest, fill = fill, group = group, excess = excess,
  }
end

kinds[1] = {open = open_sliding, look = look_sliding, add = add_sliding, save = save_sliding, expires = expires_sliding}
