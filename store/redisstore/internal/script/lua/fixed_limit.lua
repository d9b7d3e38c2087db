-- The numbers that fixed_fast.lua has read, and the argument that it read them
-- from: the steps of a run mostly have the same.
local _, known, ask, n, quota, w
