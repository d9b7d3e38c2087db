-- Fixed windows: a period starts with the first hit after the one before.
local function open_fixed(v, i, at)
  local quota, w
  quota, w, p = up('<I7I7', args, p)
  return open_period(3, v, i, at, quota, w, at)
end

kinds[3] = {open = open_fixed, look = look_period, add = add_period, save = save_period, expires = expires_period}
