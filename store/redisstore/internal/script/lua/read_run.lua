-- The state of the one op: it was read with the others of the run. One that was not
-- there then, or that a step before this one may have changed, is read again.
local state = states[KEYS[first]]
if state then states[KEYS[first]] = nil else state = try('GET', KEYS[first]) end
