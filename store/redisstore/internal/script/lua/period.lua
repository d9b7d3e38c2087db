-- Fixed and calendar windows. State: version, kind, the period's mark (of a
-- fixed window its start, of a calendar window its end), the hits in it.
local function look_period(o, n)
  local used, quota = o.used, o.quota
  if n == 0 or used <= quota - n then return used, 0 end
  if n > quota then return used, NEVER end
  return used, o.mark + o.w
end

local function add_period(o, n)
  if o.live then
    o.used = math.min(o.used + n, MAX)
  else
    o.live, o.mark, o.used = true, o.next, n
  end
end

local function expires_period(o)
  return o.live and o.mark + o.w or 0
end

local function save_period(o)
  if not o.live then return nil end
  return pk('<BBI7I7', 1, o.kind, o.mark, o.used), o.mark + o.w
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
  }
end
