-- Decides what most steps with COUNT sliding limits are: each hit fits into the newest
-- group of its state, and nothing has left a window. It does so without the tables that
-- sliding_many_fast.lua needs, which decides the other common steps.
if total == COUNT then
  if few_known ~= args then
    few_known = args
    its_ask@, its_n@, its_quota@, its_w@, its_size@ = up('<BI7I7I7I7', args, p + 1 + 30 * (@ - 1))
    its_step@ = (its_w@ - its_w@ % 8) / 8 + 1
  end
  local head@ = all[first + @ - 1]
  if true
    and head@ and #head@ >= 39
  then
    local kind@, newest@, oldest@, fill@, group@ = up('<I4I7I7I7I7', head@) -- as in sliding_fast.lua
    local at@ = newest@ > now and newest@ or now
    local used@ = (kind@ - 65793) / 65536 * group@ + fill@
    if true
      and kind@ % 65536 == 257 and its_ask@ == ENFORCE and group@ == its_size@ and oldest@ > at@ - its_w@
      and used@ < MAX and used@ <= its_quota@ - its_n@ and fill@ + its_n@ <= group@
    then
      call('SETRANGE', KEYS[first + @ - 1], '4', pk('<I7I7I7', at@, kind@ > 65793 and oldest@ or at@, fill@ + its_n@))
      local tick@ = at@ - at@ % its_step@
      if newest@ < tick@ then
        local ms = tick@ + its_step@ + its_w@ - now + 999 --@
        call('PEXPIRE', KEYS[first + @ - 1], (ms - ms % 1000) / 1000 + slack)
      end --@
