-- In a bucket holds do not drain, and what they cost is booked when they end.

-- advance lets a bucket drain until t.
local function advance(o, t)
  local d = o.now + o.d - t
  if d < 0 then o.f, d = 0, 0 end
  o.d, o.now = d, t
end

-- copy returns the bucket without holds of h.
local function copy(h)
  local b = h.base
  return {now = b.now, cap = b.cap, quota = b.quota, length = b.length, divisor = b.divisor, d = b.d, f = b.f}
end

-- level returns how much is used at t, with what has ended and is kept, and
-- whether n more fit.
local function level(h, t, n)
  local o, held, s = copy(h), h.sum, h.first
  for _ = 1, h.count do
    local till, _, keep, hits
    till, _, _, _, keep, hits, s = up(READ_HOLD, h.list, s)
    if till > t then break end
    held = held - hits
    if keep == 1 then
      advance(o, till)
      add_bucket(o, hits)
    end
  end
  advance(o, t)
  local used = look_bucket(o, 0)
  local fits = n == 0 or n <= o.cap - held
  if fits and n > 0 then
    local _, at = look_bucket(o, n + held)
    fits = at == 0
  end
  return math.min(used + held, o.cap), fits
end

-- drained returns when the bucket of h is empty at the latest: as if all that is kept ended
-- at the instant last, with the last hold.
local function drained(h, last)
  local o = copy(h)
  advance(o, last)
  if h.kept > 0 then add_bucket(o, h.sum) end
  return expires_bucket(o)
end

-- wait returns the instant from which n hits, which do not fit now, fit if no hold is
-- settled. Between two ends of holds the bucket drains as one without holds. Once the
-- rest of the capacity has room for n hits, the end of a hold that is kept changes nothing:
-- as many hits as it held are in the bucket, which is not empty before n hits fit.
local function wait(h, n)
  local o, held, s, stop = copy(h), h.sum, h.first, behind(h)
  while true do
    local till, keep, hits, _ = NEVER, 0, 0, nil
    if s < stop then till, _, _, _, keep, hits = up(READ_HOLD, h.list, s) end
    if till > h.now and n <= o.cap - held then
      if o.now < h.now then advance(o, h.now) end
      local _, at = look_bucket(o, n + held)
      if at == 0 then at = o.now end
      if at < till then return at end
      if keep == 1 and at + o.cap * o.length / o.quota < MAX then
        local ends, moved = h.first + ended(h, at) * HOLD_SIZE, 0
        local kept = s
        while s < ends and byte(h.list, s + KEEP) == 1 do s = s + HOLD_SIZE end
        if s == ends then return at end
        for k = kept, s - 1, HOLD_SIZE do moved = moved + up('<I7', h.list, k + HITS) end
        add_bucket(o, moved)
        held = held - moved
        till, _, _, _, keep, hits = up(READ_HOLD, h.list, s) -- which is not kept
      end
    end
    if till == NEVER then return NEVER end
    advance(o, till)
    held = held - hits
    if keep == 1 then add_bucket(o, hits) end
    s = s + HOLD_SIZE
  end
end

local function give_back_bucket(o, at, n)
  if o.quota == 0 then return true end
  local q, r = times(n, o.length, o.quota)
  q = q - math.max(o.now - at, 0)
  if q < 0 then return true end
  local d, f = o.d - q, o.f - r
  if f < 0 then d, f = d - 1, f + o.quota end
  if d < 0 then d, f = 0, 0 end
  o.d, o.f = d, f
end

local row = kinds[5]
row.sub_at = give_back_bucket
keep_raw(row)
row.aged = {
  open = function(v, _, seen) return row.open(v, 1, seen) end,
  adopt = function(o) return o end,
  level = level,
  drained = drained,
  wait = wait,
  begin = function() end,
  advance = advance,
  add = row.add,
  sub = row.sub,
  sub_at = row.sub_at,
  empty = changes(function(o) o.d, o.f = 0, 0 end),
  book = function(o, _, settled, n)
    advance(o, settled)
    row.add(o, n)
  end,
  leaves = function() return 0 end,
  lasts = function() return 0 end,
  expires = expires_bucket,
  trim = function() end,
  save = row.save,
}
