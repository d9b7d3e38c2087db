-- A bucket: the generic cell rate algorithm. State: version, kind, the instant
-- until which time is booked, the fraction of a microsecond booked after it as
-- a numerator and its denominator, the quota; 0 and 0 for none.
--
-- The limit comes as capacity, quota and length, both divided by their greatest
-- common divisor, and that divisor: capacity · length is below 2^53 then, and
-- every fraction in a state a multiple of the divisor.

-- times is n · length / quota, rounded down, and the remainder; no number on
-- the way is above 2^53. NEVER when the quotient is.
local function times(n, length, quota)
  if n <= MAX / length - 1 then
    n = n * length
    return floor(n / quota), n % quota
  end
  local whole, rest = floor(length / quota), length % quota
  local q, r = 0, 0
  for bit = 52, 0, -1 do -- q + r/quota = n' · length/quota, n' the top bits of n
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

-- ahead is how far ahead time may be booked for n more hits to fit.
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
  if n > MAX then n = MAX end
  local q, r = times(n, o.length, o.quota)
  if r >= o.quota - o.f then q, r = q + 1, r - (o.quota - o.f) else r = r + o.f end
  o.d, o.f = o.d + q, r
  if o.now + o.d >= MAX then o.d, o.f = MAX - o.now, 0 end
end

--: refund
local function sub_bucket(o, n)
  if o.cap == 0 then
    o.d, o.f = 0, 0
    return
  end
  local q, r = times(n, o.length, o.quota)
  local d, f = o.d - q, o.f - r
  if f < 0 then d, f = d - 1, f + o.quota end
  if d < 0 then d, f = 0, 0 end
  o.d, o.f = d, f
end

--: all
local function save_bucket(o)
  local d, f = o.d, o.f
  if d == 0 and f == 0 then return nil end
  local common = f > 0 and o.common or 0
  return pk('<BBI7I7I7', 1, 5, o.now + d, f * common, o.quota * common)
end

local function expires_bucket(o)
  if o.f > 0 then return o.now + o.d + 1 end
  return o.d > 0 and o.now + o.d or 0
end

open[5] = function(v, i, at)
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
    look = look_bucket, add = add_bucket, expires = expires_bucket, save = save_bucket,
--: refund
    sub = sub_bucket,
--: all
  }
end
