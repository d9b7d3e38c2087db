-- Decides a call, and returns its reply, or the server's error. run_end.lua or
-- run_common_begin.lua ends the function.
local function decide(args, first, total)
  local p = 3
