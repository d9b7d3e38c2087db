-- A program for one step with one op, whose common calls are decided first. It reads
-- the argument, which begin.lua describes, with the numbers of the op at once.
local args, p, first, key = ARGV[1], 19, 1, KEYS[1]
