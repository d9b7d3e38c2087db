-- Distinct members in a fixed window.
local function open_members_fixed(v, _, at, k)
  local quota, highest, w
  quota, highest, w, p = up('<I7I7I7', args, p)
  return open_members(8, v, at, k, quota, highest, w, at)
end

kinds[8] = {
  open = open_members_fixed, look = look_members, add = add_members, save = save_members, expires = expires_members,
  keys = 3, parts = true,
}
