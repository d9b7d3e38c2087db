-- The state of the one op was read with the others of the run.
local state = all[first] or try('GET', KEYS[first])
local its_used, its_wait, its_reset
repeat
