-- The numbers of the step's one op, in a program that decides common calls first.
if known ~= args then
  its_ask, its_n, its_cap, its_quota, its_length, its_common = up('<BI7I7I7I7I7', args, p + 1)
  known, its_step = args, floor(its_length * its_common / 8) + 1 -- of the window, whatever the quota
end
