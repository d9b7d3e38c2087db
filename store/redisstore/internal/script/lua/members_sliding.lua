-- Distinct members in a sliding window.
local function open_members_sliding(v, _, at, k)
  local quota, highest, w
  quota, highest, w, p = up('<I7I7I7', args, p)
  return open_members(7, v, at, k, quota, highest, w, 0)
end

kinds[7] = {
  open = open_members_sliding, look = look_members, add = add_members, save = save_members, expires = expires_members,
  keys = 3, parts = true,
}
