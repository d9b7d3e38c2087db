-- What is in flight. State: version, kind, the sum of all places; then 25 bytes a
-- place, the one that ends first at the front: end, id, hits. A place that has
-- ended stays until places change.
local function skip_places(o)
  while o.count > 0 do
    local till, _, hits, s = up('<I7c12I6', o.v, o.s)
    if till > o.now then return end
    o.sum, o.count, o.s = o.sum - hits, o.count - 1, s
  end
end

local function find_place(o, id)
  local at = string.find(o.v, id, o.s + 7, true)
  while at and (at - 7 - o.s) % 25 ~= 0 do at = string.find(o.v, id, at + 1, true) end
  return at and at - 7
end

local function insert_place(o, till, id, hits)
  local s = o.s + o.count * 25
  while s > o.s and up('<I7', o.v, s - 25) > till do s = s - 25 end
  o.v = cut(o.v, o.s, s - 1) .. pk('<I7c12I6', till, id, hits) .. cut(o.v, s)
  o.s, o.count, o.sum, o.raw = 1, o.count + 1, o.sum + hits, nil
end

local function remove_place(o, s)
  local _, _, hits = up('<I7c12I6', o.v, s)
  o.v = cut(o.v, o.s, s - 1) .. cut(o.v, s + 25)
  o.s, o.count, o.sum, o.raw = 1, o.count - 1, o.sum - hits, nil
  return hits
end

kinds[11] = {
  open = function(v, i, at)
    local quota, length
    quota, length, p = up('<I7I7', args, p)
    local o = {now = at, quota = quota, v = '', s = 1, sum = 0, count = 0}
    if not v then return o end
    o.sum = up('<I7', v, i + 2)
    o.v, o.raw, o.s, o.count = v, v, i + 9, (#v - i - 8) / 25
    local newest = up('<I7', v, #v - 24) - length
    if newest > at then o.now = newest end
    skip_places(o)
    return o
  end,
  look = function(o, n)
    if n == 0 then return o.sum, 0 end
    if n > o.quota then return o.sum, NEVER end
    local fits, over, s = 0, o.sum + n - o.quota, o.s
    if o.most and o.count >= o.most then fits = up('<I7', o.v, s) end
    while over > 0 do
      local till, _, hits
      till, _, hits, s = up('<I7c12I6', o.v, s)
      over = over - hits
      if till > fits then fits = till end
    end
    return o.sum, fits
  end,
  add = function() end,
  sub = function() return true end,
  sub_at = function() end,
  expires = function(o)
    return o.count > 0 and up('<I7', o.v, o.s + o.count * 25 - 25) or 0
  end,
  save = function(o)
    if o.raw then return o.raw, up('<I7', o.raw, #o.raw - 24) end
    if o.count == 0 then return nil end
    return pk('<BBI7', 1, 11, o.sum) .. cut(o.v, o.s), up('<I7', o.v, #o.v - 24)
  end,
  find = find_place,
  hold = function(o, n, id, till)
    if o.count >= o.most then return false end
    insert_place(o, till, id, math.min(n, 1099511627776)) -- window.MostHeld
    return true
  end,
  finish = function(o, id)
    local s = find_place(o, id)
    if s then remove_place(o, s) end
    return s
  end,
  renew = function(o, id, till)
    local s = find_place(o, id)
    if s then insert_place(o, till, id, remove_place(o, s)) end
    return s
  end,
}
