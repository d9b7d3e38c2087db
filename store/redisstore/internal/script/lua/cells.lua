-- Cells of equal width. State: version, kind, width of a cell, index of the newest,
-- sum of all, hits of the newest, number of the others; then the others that
-- are not zero, oldest first: index modulo 2^16, hits.
local function estimate(o)
  -- The oldest cell is weighed by its overlap, in 1/1024ths.
  local sum, width, from = o.sum, o.width, o.now - o.w + 1
  local oldest, hits = o.index, o.cur
  if o.n > 0 then
    local e, x = up('<I2I7', o.v, o.s)
    oldest, hits = oldest - (oldest - e) % 65536, x
  end
  local inside = (oldest + 1) * width - from
  if sum == 0 or inside >= width then return sum end
  inside = inside * 1024
  local share = floor((inside - math.fmod(inside, width)) / width + 0.5)
  if hits < 1099511627776 then return sum - hits + floor(hits * share / 1024) end
  return sum - hits + floor(hits / 1024) * share
end

local function look_cells(o, n)
  local quota, left = o.quota, o.sum
  if quota > MAX then return estimate(o), 0 end
  if n == 0 or left <= quota - n then return left, 0 end
  if n > quota then return left, NEVER end
  local v, s, width = o.v, o.s, o.width
  for _ = 1, o.n do
    local e, x
    e, x, s = up('<I2I7', v, s)
    left = left - x
    if left <= quota - n then
      return o.sum, (o.index - (o.index - e) % 65536 + 1) * width + o.w - 1
    end
  end
  return o.sum, (o.index + 1) * width + o.w - 1
end

local function expire_cells(o)
  local edge = floor((o.now - o.w + 1) / o.width)
  if o.index < edge then
    o.sum, o.cur, o.n = 0, 0, 0
    return
  end
  local v, s, index = o.v, o.s, o.index
  while o.n > 0 do
    local e, x, q = up('<I2I7', v, s)
    if index - (index - e) % 65536 >= edge then break end
    o.sum, o.n, s = o.sum - x, o.n - 1, q
  end
  o.s = s
end

-- recut moves the hits into cells of the limit's width: each cell's to the cell
-- that its end falls in, so none is dated earlier than it was, or to that of now.
-- Cells that have left already are read again: they may still be inside wider ones.
local function recut(o)
  local to, v = o.want, o.v
  local width, s
  width, o.index, o.sum, o.cur, o.n, s = up('<I7I7I7I7I2', v, o.i + 2)
  local last = floor(math.min((o.index + 1) * width - 1, o.now) / to)
  local cells, sum, prev, held = {}, 0, nil, 0
  for i = 1, o.n + 1 do
    local index, x = o.index, o.cur
    if i <= o.n then
      index, x, s = up('<I2I7', v, s)
      index = o.index - (o.index - index) % 65536
    end
    index = floor(math.min((index + 1) * width - 1, o.now) / to)
    if index >= last - 10000 then -- window.MaxCells
      if index ~= prev and held > 0 then
        cells[#cells + 1] = pk('<I2I7', prev % 65536, held)
        held = 0
      end
      prev, held, sum = index, held + x, sum + x
    end
  end
  o.width, o.index, o.sum, o.cur = to, last, sum, held
  o.v, o.s, o.n = table.concat(cells), 1, #cells
end

local function add_cells(o, n)
  if o.width ~= o.want then
    recut(o)
    expire_cells(o)
  end
  local index = floor(o.now / o.width)
  if n > MAX - o.sum then n = MAX - o.sum end
  if o.sum > 0 and index <= o.index then
    o.cur = o.cur + n
  else
    if o.cur > 0 then
      local more = pk('<I2I7', o.index % 65536, o.cur)
      o.v, o.s = o.n > 0 and cut(o.v, o.s, o.s + o.n * 9 - 1) .. more or more, 1
      o.n = o.n + 1
    end
    o.index, o.cur = index, n
  end
  o.sum = o.sum + n
end

local function expires_cells(o)
  if o.sum == 0 then return 0 end
  local last = o.index
  if o.cur == 0 then
    local e = up('<I2', o.v, o.s + (o.n - 1) * 9)
    last = last - (last - e) % 65536
  end
  return (last + 1) * o.width + o.w - 1
end

local function save_cells(o)
  if o.sum == 0 then return nil end
  local v = o.n > 0 and cut(o.v, o.s, o.s + o.n * 9 - 1) or ''
  v = pk('<BBI7I7I7I7I2', 1, 2, o.width, o.index, o.sum, o.cur, o.n) .. v
  o.v, o.i, o.s = v, 1, 33
  return v, expires_cells(o)
end

local function open_cells(v, i, at)
  local o = {
    now = at, quota = 0, w = 0, want = 0, v = v, i = i, s = 1,
    width = 0, index = 0, sum = 0, cur = 0, n = 0,
  }
  o.quota, o.w, o.want, p = up('<I7I7I7', args, p)
  o.width = o.want
  if v then
    o.width, o.index, o.sum, o.cur, o.n, o.s = up('<I7I7I7I7I2', v, i + 2)
    local start = o.index * o.width
    if start > at then o.now = start end
    expire_cells(o)
  end
  return o
end

kinds[2] = {open = open_cells, look = look_cells, add = add_cells, save = save_cells, expires = expires_cells}
