-- The numbers that bucket_fast.lua has read, and the argument that it read them
-- from: the steps of a run mostly have the same.
local known, its_ask, its_n, its_cap, its_quota, its_length, its_common, its_step
local its_whole, its_full, its_cost, its_time, its_part, its_most
