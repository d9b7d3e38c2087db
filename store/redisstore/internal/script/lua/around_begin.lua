-- The state of the first op of the program around.
local AROUND = 6 -- the status of a reply with holds and bans

local state = try('GET', KEYS[first])
