-- A limit that counts from the count-th hit of another window, its base, on.
-- State: version, kind, length of the base's state, that state, the limit's.

-- part is how many of n hits are the limit's when the base holds used.
local function part(o, used, n)
  return math.min(math.max(used - o.count + 1 + n, 0), n)
end

-- reopen reads both states again, as they are at an instant.
local function reopen(o, at)
  local back = p
  p = o.p
  local kind
  kind, p = up('<B', args, p)
  local base = open[kind](o.bv, o.bi, at)
  kind, p = up('<B', args, p)
  local inner = open[kind](o.iv, o.ii, at)
  p, off = back, false
  return base, inner
end

local function look_after(o, n)
  local held = o.base:look(0)
  local k = part(o, held, n)
  local used, fits = o.inner:look(k)
  if fits == 0 then return used, 0 end
  -- The hits fit when the limit has room for them, or earlier, when so much has
  -- left the base that fewer of them are the limit's: bisect.
  local function fits_at(at)
    local base, inner = reopen(o, at)
    local h = base:look(0)
    local _, f = inner:look(part(o, h, n))
    return f == 0
  end
  local hi = fits
  if fits == NEVER then
    hi = math.max(o.base:expires(), o.inner:expires())
    if hi <= o.now or not fits_at(hi) then return used, NEVER end
  end
  local lo = o.now
  if lo < hi - 1 and not fits_at(hi - 1) then lo = hi - 1 end
  while hi - lo > 1 do
    local mid = floor((lo + hi) / 2)
    if fits_at(mid) then hi = mid else lo = mid end
  end
  return used, hi
end

local function add_after(o, n)
  local held = o.base:look(0)
  local k = part(o, held, n)
  o.base:add(n)
  o.touched = k > 0
  if k > 0 then o.inner:add(k) end
end

--: refund
local function sub_after(o, n)
  local held = o.base:look(0)
  local k = math.min(math.max(held - o.count + 1, 0), n)
  o.base:sub(n)
  o.touched = k > 0
  if k > 0 then o.inner:sub(k) end
end

--: all
local function save_after(o)
  local b = o.base:save() or ''
  local s
  if o.touched then
    s = o.inner:save()
  elseif o.iv then
    s = cut(o.iv, o.ii)
  end
  s = s or ''
  o.bv, o.bi, o.iv, o.ii = b ~= '' and b, 1, s ~= '' and s, 1
  if b == '' and s == '' then return nil end
  return pk('<BBI3', 1, 6, #b) .. b .. s
end

local function expires_after(o)
  return math.max(o.base:expires(), o.inner:expires())
end

open[6] = function(v, i, at)
  local count, start
  count, p = up('<I7', args, p)
  start = p
  local bv, bi, iv, ii = false, 1, false, 1
  if v then
    local len = up('<I3', v, i + 2)
    if len > 0 then bv, bi = v, i + 5 end
    if #v >= i + 5 + len then iv, ii = v, i + 5 + len end
  end
  local o = {
    now = at, count = count, p = start, bv = bv, bi = bi, iv = iv, ii = ii,
    base = nil, inner = nil, touched = false,
    look = look_after, add = add_after, expires = expires_after, save = save_after,
--: refund
    sub = sub_after,
--: all
  }
  local kind
  kind, p = up('<B', args, p)
  o.base = open[kind](bv, bi, at)
  kind, p = up('<B', args, p)
  o.inner = open[kind](iv, ii, at)
  o.now = math.max(o.base.now, o.inner.now)
  if not off and (o.base.now < o.now or o.inner.now < o.now) then o.base, o.inner = reopen(o, o.now) end
  return o
end
