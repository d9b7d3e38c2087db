-- The holds of an op: o.count of them in o.list, from o.first on, see holding.lua. One is read
-- with its id as two numbers, because a string costs more.
local HOLD, READ_HOLD, HOLD_SIZE = '<I7I7c12BI7', '<I7I7dI4BI7', 34
local AT, KEEP, HITS = 7, 26, 27 -- where these begin in a hold
local byte = string.byte

local function hold_at(o, s)
  return up(READ_HOLD, o.list, s)
end

-- behind returns the index in o.list of what follows the holds.
local function behind(o)
  return o.first + o.count * HOLD_SIZE
end

local function last_end(o)
  return up('<I7', o.list, behind(o) - HOLD_SIZE)
end

local function find_hold(o, id)
  local at = string.find(o.list, id, o.first + 14, true)
  while at and (at - 14 - o.first) % HOLD_SIZE ~= 0 do at = string.find(o.list, id, at + 1, true) end
  return at and at < behind(o) and at - 14
end

local function live_hold(o, id)
  if o.row.find then return o.row.find(o.plain, id) end
  local s = o.held and find_hold(o, id)
  return s and hold_at(o, s) > o.now and s
end

-- ended returns how many holds have ended at t.
local function ended(o, t)
  local lo, hi = 0, o.count -- between them is the answer
  while lo < hi do
    local mid = floor((lo + hi) / 2)
    if up('<I7', o.list, o.first + mid * HOLD_SIZE) <= t then lo = mid + 1 else hi = mid end
  end
  return lo
end

local function insert_hold(o, till, at, id, keep, hits)
  local s = o.first + ended(o, till) * HOLD_SIZE
  local h = pk(HOLD, till, at, id, keep, hits)
  o.list, o.first = cut(o.list, o.first, s - 1) .. h .. cut(o.list, s, behind(o) - 1), 1
  o.count, o.sum = o.count + 1, o.sum + hits
end

local function remove_hold(o, s)
  local _, _, _, _, _, hits = hold_at(o, s)
  o.list, o.first = cut(o.list, o.first, s - 1) .. cut(o.list, s + HOLD_SIZE, behind(o) - 1), 1
  o.count, o.sum = o.count - 1, o.sum - hits
end

-- newest_hold returns the latest instant of a take whose hold is kept, plus 1, or 0.
local function newest_hold(o)
  local latest = 0
  for s = o.first, behind(o) - 1, HOLD_SIZE do
    local at = up('<I7', o.list, s + AT)
    if at >= latest and byte(o.list, s + KEEP) == 1 then latest = at + 1 end
  end
  return latest
end
