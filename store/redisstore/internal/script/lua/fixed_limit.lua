-- The numbers that fixed_fast.lua has read, and the argument that it read them
-- from: the steps of a run mostly have the same.
local known, its_ask, its_n, its_quota, its_w
