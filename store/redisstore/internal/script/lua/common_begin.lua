-- What is decided for each op, and what was asked: see common_call.lua.
local numbers = {false, false, false, false, false, false, false, false, false, false, false, false}
local known
local asked = {false, false, false, false, false, false, false}
