-- The state of the one op was read with the others of the run.
local key = KEYS[first]
local state = all[first] or try('GET', key)
local its_used, its_wait, its_reset
repeat
