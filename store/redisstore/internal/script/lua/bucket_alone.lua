-- What begin.lua and bucket_numbers.lua read, and what the latter works out.
local now, deadline, its_ask, its_n, its_cap, its_quota, its_length, its_common = up('<I7I7xxxxxBI7I7I7I7I7', args)
local its_step, its_cost = its_length * its_common, its_n * its_length
its_step = (its_step - its_step % 8) / 8 + 1
local its_whole, its_full, its_most = its_quota * its_common, its_cap * its_length, MAX / its_quota
local its_part = its_cost % its_quota
local its_time = (its_cost - its_part) / its_quota
