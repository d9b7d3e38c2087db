-- Hits of a hold in cells count in the cell of the take.

-- age reads a state as open_cells does, but at no later instant.
local function age(v, at)
  local o = open_cells(v, 1, 0)
  if v then
    o.width, o.index, o.sum, o.cur, o.n, o.s = up('<I7I7I7I7I2', v, 3)
  end
  o.now, o.raw = at, v
  if v then expire_cells(o) end
  return o
end

local function leaves_cells(o, at)
  return (floor(at / o.want) + 1) * o.want + o.w - 1
end

-- each_cell returns the index and the hits of the cell at s, and what follows.
local function each_cell(o, s)
  local e, x
  e, x, s = up('<I2I7', o.v, s)
  return o.index - (o.index - e) % 65536, x, s
end

local function book_cells(o, at, _, n)
  if leaves_cells(o, at) <= o.now then return true end
  if o.width ~= o.want then
    recut(o)
    expire_cells(o)
  end
  n = math.min(n, MAX - o.sum)
  local index = floor(at / o.want)
  if o.sum == 0 then
    o.index, o.sum, o.cur, o.n = index, n, n, 0
    return
  end
  o.sum = o.sum + n
  if index == o.index then
    o.cur = o.cur + n
  elseif index > o.index then
    local more = o.cur > 0 and pk('<I2I7', o.index % 65536, o.cur) or ''
    o.v, o.s = (o.n > 0 and cut(o.v, o.s, o.s + o.n * 9 - 1) or '') .. more, 1
    o.n, o.index, o.cur = #o.v / 9, index, n
  else
    local s, before = o.s, o.s
    for _ = 1, o.n do
      local i, x, after = each_cell(o, s)
      if i > index then break end
      if i == index then n, before = n + x, after else before = after end
      s = i == index and s or after
      if i == index then break end
    end
    local old = o.n > 0 and o.v or ''
    o.v = cut(old, o.s, s - 1) .. pk('<I2I7', index % 65536, n) .. cut(old, before, o.s + o.n * 9 - 1)
    o.s, o.n = 1, #o.v / 9
  end
end

local function give_back_cells(o, at, n)
  local index = floor(at / o.want)
  if o.sum == 0 or o.width ~= o.want or leaves_cells(o, at) <= o.now then return true end
  if index == o.index then
    n = math.min(n, o.cur)
    if n == 0 then return true end
    o.cur, o.sum = o.cur - n, o.sum - n
    return
  end
  local s = o.s
  for _ = 1, o.n do
    local i, x, after = each_cell(o, s)
    if i == index then
      n = math.min(n, x)
      o.sum = o.sum - n
      local left = x > n and pk('<I2I7', i % 65536, x - n) or ''
      o.v = cut(o.v, o.s, s - 1) .. left .. cut(o.v, after, o.s + o.n * 9 - 1)
      o.s, o.n = 1, #o.v / 9
      return
    end
    s = after
  end
  return true
end

local row = kinds[2]
row.sub_at = give_back_cells
keep_raw(row)
row.aged = {
  open = age,
  adopt = function(o) return o end,
  used = function(o, t)
    local used, s = look_cells(o, 0), o.s
    if t == o.now then return used end
    for _ = 1, o.n do
      local i, x, after = each_cell(o, s)
      if (i + 1) * o.width + o.w - 1 > t then return used end
      used, s = used - x, after
    end
    return (o.index + 1) * o.width + o.w - 1 > t and used or 0
  end,
  leaving = function(o)
    local i, s = 0, o.s
    return function()
      i = i + 1
      local index, hits = o.index, o.cur
      if i <= o.n then index, hits, s = each_cell(o, s) end
      if i > o.n + 1 then return nil end
      return (index + 1) * o.width + o.w - 1, hits
    end
  end,
  begin = function() end,
  add = row.add,
  sub = row.sub,
  sub_at = row.sub_at,
  empty = changes(function(o) o.sum, o.cur, o.n = 0, 0, 0 end),
  book = changes(book_cells),
  leaves = leaves_cells,
  lasts = leaves_cells,
  expires = expires_cells,
  trim = function() end,
  save = row.save,
}
