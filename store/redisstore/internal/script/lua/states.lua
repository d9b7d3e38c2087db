-- The states of all keys, read at once. An error means that the user may not do that:
-- each state is then read by itself. So are keys that hold something else than a
-- string: they read as if they were unused.
local states = {}
if #KEYS <= 2000 and KEYS[1] ~= KEYS[2] then -- Lua's bound; many steps may be for one key
  local all = try('MGET', unpack(KEYS))
  if not all.err then
    for i = 1, #KEYS do states[KEYS[i]] = all[i] end
  end
end
