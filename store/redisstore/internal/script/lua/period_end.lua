-- period_end reads the calendar periods around the caller's instant, which come
-- with the call, and returns the end and the start of the one that at is in. A state
-- holds the end of its own period.
local function period_end(at)
  local start, e1, e2, e3
  start, e1, e2, e3, p = up('<I7I7I7I7', args, p)
  if at < start or at >= e3 then off = at end
  if at < e1 then return e1, start elseif at < e2 then return e2, e1 end
  return e3, e2
end
