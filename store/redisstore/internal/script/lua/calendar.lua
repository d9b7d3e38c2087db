-- Calendar windows: a period ends with the day, the month, and so on.
--
-- Under a limit that keeps closed periods a state has one more number if it is not 0: the
-- hits of the period before its own. An op has them in prev: those of the period before
-- that of its state if it is live, or before the one that now is in.

-- readable returns the instant until which the period with a mark can be read after its
-- end: the end of the next one, or later.
local function readable(o, mark)
  local start, e1, e2, e3 = up('<I7I7I7I7', args, o.periods)
  return mark == start and e1 or mark == e1 and e2 or mark == e2 and e3 or mark + 2 * (e3 - start)
end

local function save_calendar(o)
  if not o.keeps then return save_period(o) end
  local mark, used = o.mark, o.used
  if not o.live then
    if o.prev == 0 then return nil end
    mark, used = math.max(mark, o.next), 0
  end
  local s = pk('<BBI7I7', 1, 4, mark, used)
  if o.prev > 0 then s = s .. pk('<I7', o.prev) end
  return s, used > 0 and readable(o, mark) or mark
end

local function expires_calendar(o)
  if o.keeps and o.used == 0 then return 0 end
  return expires_period(o)
end

local function open_calendar(v, i, at)
  local quota, keeps
  quota, keeps, p = up('<I7I7', args, p)
  local periods = p
  local next, start = period_end(at)
  local o = open_period(4, v, i, at, quota, 0, next)
  o.periods = periods
  if keeps == 1 then
    o.keeps, o.prev, o.start, o.readable = true, 0, start, readable
    if o.live then
      if #v >= i + 22 then o.prev = up('<I7', v, i + 16) end
    elseif v and o.mark == start then
      o.prev = up('<I7', v, i + 9)
    end
  end
  return o
end

kinds[4] = {
  open = open_calendar, look = look_period, add = add_period, save = save_calendar, expires = expires_calendar,
}
