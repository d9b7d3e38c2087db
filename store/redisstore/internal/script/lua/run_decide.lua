-- Decides a call, and returns its reply, or the server's error.
local function decide(args, first, total)
  local p = 3
