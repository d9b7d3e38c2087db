-- Distinct members in a calendar window.
local function open_members_calendar(v, _, at, k)
  local quota, highest
  quota, highest, p = up('<I7I7', args, p)
  return open_members(9, v, at, k, quota, highest, 0, period_end(at))
end

kinds[9] = {
  open = open_members_calendar, look = look_members, add = add_members, save = save_members, expires = expires_members,
  keys = 3, parts = true,
}
