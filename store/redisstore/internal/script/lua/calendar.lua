-- Calendar windows: a period ends with the day, the month, and so on.
local function open_calendar(v, i, at)
  local quota
  quota, p = up('<I7', args, p)
  return open_period(4, v, i, at, quota, 0, period_end(at))
end

kinds[4] = {open = open_calendar, look = look_period, add = add_period, save = save_period, expires = expires_period}
