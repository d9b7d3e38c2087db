-- A bucket: the generic cell rate algorithm. State: version, kind, the instant
-- until which time is booked, the fraction of a microsecond booked after it as
-- a numerator and its denominator, the quota; 0 and 0 for none.
--
-- The limit comes as its capacity, its quota and length, both divided by their
-- greatest common divisor, and that divisor. Then capacity · length is below
-- 2^53, and every fraction in a state is a multiple of the divisor.
--
-- A key lives up to an eighth of the window longer than its state: until a
-- multiple of that, so that most takes need not move its expiry.

-- times returns n · length / quota, rounded down, and the remainder, without a
-- number above 2^53 on the way. It returns NEVER if the quotient is above that.
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

-- ahead returns how far ahead time may be booked so that n more hits fit.
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
  local q, r = times(n, o.length, o.quota)
  if r >= o.quota - o.f then q, r = q + 1, r - (o.quota - o.f) else r = r + o.f end
  o.d, o.f = o.d + q, r
  if o.now + o.d >= MAX then o.d, o.f = MAX - o.now, 0 end
end

local function expires_bucket(o)
  if o.f > 0 then return o.now + o.d + 1 end
  return o.d > 0 and o.now + o.d or 0
end

local function save_bucket(o)
  local d, f = o.d, o.f
  if d == 0 and f == 0 then return nil end
  local divisor = f > 0 and o.divisor or 0
  local step = floor(o.length * o.divisor / 8) + 1 -- as in fast_bucket.lua
  return pk('<BBI7I7I7', 1, 5, o.now + d, f * divisor, o.quota * divisor), (floor(expires_bucket(o) / step) + 1) * step
end

local function open_bucket(v, i, at)
  local cap, quota, length, divisor
  cap, quota, length, divisor, p = up('<I7I7I7I7', args, p)
  local d, f = 0, 0
  if v then
    local till, part, whole = up('<I7I7I7', v, i + 2)
    if till >= at then
      d = till - at
      if whole > 0 then
        if whole == quota * divisor then f = part / divisor else d = d + 1 end
      end
    end
  end
  return {
    now = at, cap = cap, quota = quota, length = length, divisor = divisor, d = d, f = f,
  }
end

kinds[5] = {open = open_bucket, look = look_bucket, add = add_bucket, save = save_bucket, expires = expires_bucket}
