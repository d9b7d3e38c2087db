-- Hits of a hold in a fixed or calendar window count in the period of the take,
-- and nowhere once it is over. A take that holds begins a period, so the hits of a
-- period can be 0.

-- has reports whether the instant at is in the period of o, and now too: after a
-- clock was set back, a calendar period can be later than now, and later than
-- those in the argument.
local function has(o, at)
  if not o.live or o.kind == 4 and o.mark ~= o.next then return false end
  if o.kind == 3 then return at >= o.mark and at < o.mark + o.w end
  local start, e1, e2, e3 = up('<I7I7I7I7', args, o.periods)
  local begin = o.mark
  if begin == e1 then begin = start elseif begin == e2 then begin = e1 elseif begin == e3 then begin = e2 end
  return at >= begin and at < o.mark
end

-- had reports whether the instant at is in the period before now, which o keeps.
local function had(o, at)
  if not o.keeps or at >= o.start or o.mark > o.next then return false end
  local start, e1 = up('<I7I7', args, o.periods)
  return at >= (o.start == e1 and start or e1)
end

-- lasting returns the instant until which a period of o can be read.
local function lasting(o)
  if o.live and o.used > 0 then return o.readable(o, o.mark) end
  return o.prev > 0 and math.max(o.mark, o.next) or 0
end

-- lasting_hold returns the same for a hold that was taken at an instant.
local function lasting_hold(o, at)
  local start, e1, e2, e3 = up('<I7I7I7I7', args, o.periods)
  if at < start then return 0 end
  return o.readable(o, at < e1 and e1 or at < e2 and e2 or e3)
end

local function give_back_period(o, at, n)
  if had(o, at) then
    if o.prev == 0 then return true end
    o.prev = math.max(o.prev - n, 0)
    return
  end
  if not has(o, at) then return true end
  o.used = math.max(o.used - n, 0)
end

for number = 3, 4 do
  local row = rawget(kinds, number)
  if row then
    local plain = row.open
    row.open = function(v, i, at)
      local o = plain(v, i, at)
      if o.keeps and o.start > 0 and o.start == up('<I7', args, o.periods) then off = at end -- where does the period before begin?
      return o
    end
    row.sub_at = function(o, at, n)
      if had(o, at) then return give_back_period(o, at, n) end
      if not has(o, at) then return true end
      row.sub(o, n)
    end
    row.ends = function(o) return (o.live and o.mark or o.next) + o.w end
    keep_raw(row)
    row.aged = {
      open = function(v, at) return row.open(v, 1, at) end,
      adopt = function(o) return o end,
      used = function(o, t) return o.live and t < o.mark + o.w and o.used or 0 end,
      leaving = function(o)
        local left = not o.live or o.used == 0
        return function()
          if left then return nil end
          left = true
          return o.mark + o.w, o.used
        end
      end,
      begin = function(o)
        if not o.live then o.live, o.mark, o.used, o.raw = true, o.next, 0, nil end
      end,
      add = row.add,
      sub = changes(function(o, n) o.used = math.max(o.used - n, 0) end),
      sub_at = changes(give_back_period),
      empty = changes(function(o) o.used = 0 end),
      book = function(o, at, _, n)
        if has(o, at) then
          o.used, o.raw = math.min(o.used + n, MAX), nil
        elseif had(o, at) then
          o.prev, o.raw = math.min(o.prev + n, MAX), nil
        end
      end,
      leaves = function(o, at) return has(o, at) and o.mark + o.w or 0 end,
      lasts = function(o, at) return o.used == 0 and has(o, at) and o.mark + o.w or 0 end,
      expires = function(o) return o.live and o.used > 0 and o.mark + o.w or 0 end,
      trim = function(o)
        if o.used > 0 then return end
        o.live = false
        if o.raw and up('<I7', o.raw, 10) == 0 then o.raw = nil end
      end,
      lasting = lasting,
      lasting_hold = lasting_hold,
      save = row.save,
    }
  end
end
