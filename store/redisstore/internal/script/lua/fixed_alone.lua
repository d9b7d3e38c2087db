-- What begin.lua and fixed_numbers.lua read.
local now, deadline, its_ask, its_n, its_quota, its_w = up('<I7I7xxxxxBI7I7I7', args)
