-- A limit that counts from the count-th hit of another window, its base, on.
-- State: version, kind, length of the base's state, that state, the limit's.

-- part returns how many of n hits the limit counts when the base holds used.
local function part(o, used, n)
  return math.min(math.max(used - o.count + 1 + n, 0), n)
end

-- open_parts reads both states at an instant. It returns the rows of their
-- kinds, too.
local function open_parts(o, at)
  local kind
  kind, p = up('<B', args, p)
  local base_row = kinds[kind]
  local base = base_row.open(o.bv, o.bi, at)
  kind, p = up('<B', args, p)
  local inner_row = kinds[kind]
  local inner = inner_row.open(o.iv, o.ii, at)
  return base, inner, base_row, inner_row
end

-- reopen reads both states once more, as they are at another instant. That may be
-- outside the periods in the argument: off says so.
local function reopen(o, at)
  local back = p
  p = o.p
  local base, inner = open_parts(o, at)
  p = back
  return base, inner
end

local function look_after(o, n)
  local base_row, inner_row = o.base_row, o.inner_row
  local held = base_row.look(o.base, 0)
  local used, fits = inner_row.look(o.inner, part(o, held, n))
  if fits == 0 then return used, 0 end
  -- The hits fit when the limit admits them, or earlier, when so much has
  -- left the base that the limit counts fewer of them: bisect.
  local function fits_at(at)
    local base, inner = reopen(o, at)
    off = false -- no period begins then
    local h = base_row.look(base, 0)
    local _, f = inner_row.look(inner, part(o, h, n))
    return f == 0
  end
  local hi = fits
  if fits == NEVER then
    hi = math.max(base_row.expires(o.base), inner_row.expires(o.inner))
    if hi <= o.now or not fits_at(hi) then return used, NEVER end
  end
  local lo = o.now
  if lo < hi - 1 and not fits_at(hi - 1) then lo = hi - 1 end
  while hi - lo > 1 do
    local mid = lo + floor((hi - lo) / 2)
    if mid == lo or mid == hi then break end -- above 2^53, in a state that was not written here
    if fits_at(mid) then hi = mid else lo = mid end
  end
  return used, hi
end

local function add_after(o, n)
  local k = part(o, o.base_row.look(o.base, 0), n)
  o.base_row.add(o.base, n)
  o.touched = k > 0
  if k > 0 then o.inner_row.add(o.inner, k) end
end

local function expires_after(o)
  return math.max(o.base_row.expires(o.base), o.inner_row.expires(o.inner))
end

local function save_after(o)
  local b = o.base_row.save(o.base) or ''
  local s
  if o.touched then
    s = o.inner_row.save(o.inner)
  elseif o.iv then
    s = cut(o.iv, o.ii)
  end
  s = s or ''
  o.bv, o.bi, o.iv, o.ii = b ~= '' and b, 1, s ~= '' and s, 1
  if b == '' and s == '' then return nil end
  return pk('<BBI3', 1, 6, #b) .. b .. s, expires_after(o)
end

local function open_after(v, i, at)
  local count
  count, p = up('<I7', args, p)
  local o = {
    now = at, count = count, p = p, bv = false, bi = 1, iv = false, ii = 1,
    base = nil, inner = nil, base_row = nil, inner_row = nil, touched = false,
  }
  if v then
    local len = up('<I3', v, i + 2)
    if len > 0 then o.bv, o.bi = v, i + 5 end
    if #v >= i + 5 + len then o.iv, o.ii = v, i + 5 + len end
  end
  o.base, o.inner, o.base_row, o.inner_row = open_parts(o, at)
  o.now = math.max(o.base.now, o.inner.now)
  if o.base.now < o.now or o.inner.now < o.now then
    off = false
    o.base, o.inner = reopen(o, o.now)
  end
  return o
end

kinds[6] = {
  open = open_after, look = look_after, add = add_after, save = save_after, expires = expires_after,
  parts = true,
}
