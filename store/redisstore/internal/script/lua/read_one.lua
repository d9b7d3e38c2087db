-- The state of the one op.
local state = try('GET', KEYS[first])
