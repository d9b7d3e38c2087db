-- What is decided for each op, and what was asked: see common_step.lua.
local numbers = {false, false, false, false, false, false, false, false, false, false, false, false}
local known
local asked = {false, false, false, false, false, false, false}
