-- A program for one step. The argument holds an instant that replaces the
-- server's and the deadline, each 0 for none, then the numbers of keys and of ops,
-- then the ops. p is the position of the next number to read, first the index of
-- the step's first key.
local args, p, first = ARGV[1], 19, 1
local now, deadline, _, total = up('<I7I7I2I2', args)
