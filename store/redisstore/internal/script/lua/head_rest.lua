-- The names that common calls do without.
local cut, floor, type = string.sub, math.floor, type

-- What the caller asks for an op, besides LOOK and RECORD.
local ENFORCE, SHADOW, REFUND = 1, 2, 4 -- + 8: count it when it is not admitted

-- A reply begins with a status and the instant. After DONE follow the numbers
-- of each op. With every other status nothing was counted, but for FAILED: the
-- server's error in one step of a run. Where common calls are decided first, there
-- are two more: see run_fast_end.lua.
local DONE, CLOCK, BROKEN, FOREIGN, FAILED = 0, 2, 3, 4, 5
