-- Decides a step that needs more than the fixed part of its state, and returns its
-- reply, or the server's error.
local function decide(args, first, total, state)
  local p = 3
