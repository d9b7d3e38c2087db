-- The numbers of the step's one op, in a run. A program for one step has them from
-- fixed_alone.lua.
if known ~= args then
  its_ask, its_n, its_quota, its_w = up('<BI7I7I7', args, p + 1)
  known = args
end
