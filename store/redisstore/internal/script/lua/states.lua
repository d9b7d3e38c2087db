-- The states of all keys, read at once. An error means that the user may not do that:
-- each state is then read by itself. So are those of keys that hold something else
-- than a string, which read as if they were unused.
local all = #KEYS <= 2000 and try('MGET', unpack(KEYS)) or {} -- Lua's bound
if all.err then all = {} end
