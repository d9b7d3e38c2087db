-- Does for several ops what sliding_fast.lua does for one: it decides calls for
-- which the fixed parts of all states are enough, and in which each op is either
-- a look or counted only if all ops admit it. Lua returns some 8,000 numbers at most.
if known ~= args then
  known = args
  local q = p
  for i = 1, total do
    local _
    _, its_asks[i], its_ns[i], its_quotas[i], its_spans[i], its_sizes[i], q = up('<BBI7I7I7I7', args, q)
  end
end
local all_fit, in_group, waiting, decided = true, true, false, 0
if total <= 1000 then
  for i = 1, total do
    local k = first + i - 1
    local head = all[k] or try('GET', KEYS[k]) or ''
    if #head < 39 then break end
    local version, kind, groups, newest, oldest, fill, group = up('<BBI2I7I7I7I7', head)
    local at, n, w = newest > now and newest or now, its_ns[i], its_spans[i]
    local used = (groups - 1) * group + fill
    local over = n > 0 and used - (its_quotas[i] - n) or 0
    if version ~= 1 or kind ~= 1 or group ~= its_sizes[i] or oldest <= at - w or used >= MAX
      or over > group and n <= its_quotas[i] then break end
    if over > 0 then
      its_waits[k], waiting = n > its_quotas[i] and NEVER or oldest + w - at, true
      if its_asks[i] ~= LOOK then all_fit = false end
    elseif its_asks[i] ~= LOOK and all_fit then
      in_group = in_group and fill + n <= group
      its_heads[i] = pk('<I7I7I7', at, groups > 1 and oldest or at, fill + n)
      local step = floor(w / 8) + 1
      local tick = at - at % step
      its_lives[i] = newest < tick and tick + step + w
    end
    numbers[2 * k - 1], numbers[2 * k] = used, newest + w - at
    decided = i
  end
end
if decided == total and (in_group or not all_fit) then
  if all_fit then
    for i = 1, total do
      if its_asks[i] ~= LOOK then
        local k = first + i - 1
        call('SETRANGE', KEYS[k], '4', its_heads[i])
        if its_lives[i] then call('PEXPIRE', KEYS[k], floor((its_lives[i] - now + 999) / 1000) + slack) end
        numbers[2 * k - 1], numbers[2 * k] = numbers[2 * k - 1] + its_ns[i], its_spans[i]
      end
    end
  end
