-- keep_dropped keeps a state whose last member that was not dropped has left.
local function keep_dropped(o)
  if o.dropped > 0 and (not o.newest or o.newest < o.dropped_at) then o.newest = o.dropped_at end
end

local function sub_from_set(o)
  local uses = tonumber(call('HGET', o.hash, o.member) or 1)
  if uses == MOST_USES then return true end
  if uses > 2 then
    call('HSET', o.hash, o.member, uses - 1)
  elseif uses == 2 then
    call('HDEL', o.hash, o.member)
  else
    call('ZREM', o.set, o.member)
    o.count = o.count - 1
    local last = call('ZRANGE', o.set, -1, -1, 'WITHSCORES')[2]
    o.score = tonumber(last)
    if last then
      o.newest = floor(last) + EPOCH
    else
      o.set, o.newest = nil, #o.v > o.first and up('<I7', o.v, #o.v - 8)
    end
    keep_dropped(o)
  end
end

local function sub_members(o)
  if not inside(o) then return true end
  if o.set then return sub_from_set(o) end
  local at, v = find(o), o.v
  local uses = up('<I2', v, at + 23)
  if uses == MOST_USES then return true end
  if uses > 1 then
    o.v = cut(v, 1, at + 22) .. pk('<I2', uses - 1) .. cut(v, at + 25)
    return
  end
  v = cut(v, 1, at - 1) .. cut(v, at + 25)
  o.v, o.count = v, o.count - 1
  o.newest = #v > o.first and up('<I7', v, #v - 8)
  keep_dropped(o)
end

for number = 7, 9 do
  local row = rawget(kinds, number)
  if row then row.sub = sub_members end
end
