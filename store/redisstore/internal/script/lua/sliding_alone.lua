-- What begin.lua and sliding_numbers.lua read.
local now, deadline, its_ask, its_n, its_quota, its_w, its_size = up('<I7I7xxxxxBI7I7I7I7', args)
local its_step = (its_w - its_w % 8) / 8 + 1
