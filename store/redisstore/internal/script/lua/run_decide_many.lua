-- Decides a step that needs more than the fixed parts of its states, and returns its
-- reply, or the server's error.
local function decide(args, first, total)
  local p = 3
