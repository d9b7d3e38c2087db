-- The state of the one op.
local state = redis.pcall('GET', KEYS[first])
