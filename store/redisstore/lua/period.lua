-- Fixed and calendar windows. State: version, kind, the period's mark (of a
-- fixed window its start, of a calendar window its end), the hits in it.
local function look_period(o, n)
  local used, quota = o.used, o.quota
  if n == 0 or used <= quota - n then return used, 0 end
  if n > quota then return used, NEVER end
  return used, o.mark + o.w
end

local function add_period(o, n)
  if n > MAX then n = MAX end
  if o.live then
    o.used = math.min(o.used + n, MAX)
  else
    o.live, o.mark, o.used = true, o.next, n
  end
end

--: refund
local function sub_period(o, n)
  if n >= o.used then
    o.live, o.used = false, 0
  else
    o.used = o.used - n
  end
end

--: all
local function save_period(o)
  return o.live and pk('<BBI7I7', 1, o.kind, o.mark, o.used) or nil
end

local function expires_period(o)
  return o.live and o.mark + o.w or 0
end

local function open_period(kind, v, i, at, quota, w, next)
  local mark, used, live = next, 0, false
  if v then
    mark, used = up('<I7I7', v, i + 2)
    if kind == 3 and mark > at then at, next = mark, mark end
    live = at < mark + w
    if not live then used = 0 end
  end
  return {
    now = at, kind = kind, quota = quota, w = w, next = next,
    mark = mark, used = used, live = live,
    look = look_period, add = add_period, expires = expires_period, save = save_period,
--: refund
    sub = sub_period,
--: all
  }
end

--: fixed
open[3] = function(v, i, at)
  local quota, w
  quota, w, p = up('<I7I7', args, p)
  return open_period(3, v, i, at, quota, w, at)
end

--: calendar, members_calendar
-- A calendar window's periods come with the call: the bounds of a few around
-- the caller's instant. A key's own period ends where its state says.
local function period_end(at)
  local start, e1, e2, e3
  start, e1, e2, e3, p = up('<I7I7I7I7', args, p)
  if at < start or at >= e3 then off = true end
  return at < e1 and e1 or at < e2 and e2 or e3
end

--: calendar
open[4] = function(v, i, at)
  local quota
  quota, p = up('<I7', args, p)
  return open_period(4, v, i, at, quota, 0, period_end(at))
end
