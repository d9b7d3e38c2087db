-- The numbers of the step's one op, in a program that decides common calls first.
if known ~= args then
  its_ask, its_n, its_quota, its_w = up('<BI7I7I7', args, p + 1)
  known = args
end
