end

-- An error of the server ends the step that met it, and no other. Steps that are
-- decided by the fixed parts of their states have numbers here, by the index of the
-- key: the hits used, the time until it is unused, and the wait, if there is one.
-- The other steps have replies, by their index.
local numbers, its_waits, waited = {}, {}, false
local replies, slow, done, next_first = {}, 0, 0, 1
local function go_on()
  local call, KEYS, all, numbers, now = call, KEYS, all, numbers, now
  local args, own_keys, total, deadline = ARGV[2], common_keys, common_total, 0
