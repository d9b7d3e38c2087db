-- The numbers of the step's one op, in a run. A program for one step has them from
-- bucket_alone.lua.
if known ~= args then
  its_ask, its_n, its_cap, its_quota, its_length, its_common = up('<BI7I7I7I7I7', args, p + 1)
  known, its_step = args, floor(its_length * its_common / 8) + 1 -- of the window, whatever the quota
  -- In parts of a microsecond, its_quota of them: a full bucket, and what the hits cost,
  -- which is its_time in microseconds and its_part more.
  its_whole, its_full, its_cost = its_quota * its_common, its_cap * its_length, its_n * its_length
  its_time, its_part, its_most = floor(its_cost / its_quota), its_cost % its_quota, MAX / its_quota
end
