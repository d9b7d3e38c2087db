-- A state that is changed around its window only, by holds or a ban, stays as it
-- is: with what a limit with other numbers left, and with what has ended. raw is
-- that state, as long as it did not change. A function that changes a state
-- returns true if it did not.
local function changes(f)
  return function(o, ...)
    local same = f(o, ...)
    if not same then o.raw = nil end
    return same
  end
end

local function keep_raw(row)
  local open, save = row.open, row.save
  row.open = function(v, i, at)
    local o = open(v, i, at)
    o.raw = i == 1 and v
    return o
  end
  row.save = function(o)
    local s, till = save(o)
    if o.raw then return o.raw, till or 0 end
    return s, till
  end
  row.add, row.sub, row.sub_at = changes(row.add), changes(row.sub), changes(row.sub_at)
end
