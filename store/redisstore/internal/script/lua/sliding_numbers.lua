-- The numbers of the step's one op, in a run. A program for one step has them from
-- sliding_alone.lua.
if known ~= args then
  its_ask, its_n, its_quota, its_w, its_size = up('<BI7I7I7I7', args, p + 1)
  known, its_step = args, floor(its_w / 8) + 1
end
