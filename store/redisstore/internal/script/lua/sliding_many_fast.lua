-- Does for several ops what sliding_fast.lua does for one: it decides calls for
-- which the fixed parts of all states are enough, and in which each op is either
-- a look or counted only if all ops admit it.
do
  local admitted, room, fast, q = true, true, 0, p
  local heads, lives = {false, false, false, false}, {false, false, false, false}
  local counted, denied = {false, false, false, false}, {false, false, false, false}
  for i = 1, total do
    local _, ask, n, quota, w, size
    _, ask, n, quota, w, size, q = up('<BBI7I7I7I7', args, q)
    local head = try('GETRANGE', KEYS[first + i - 1], '0', '38')
    if #head ~= 39 then break end
    local version, kind, k, newest, oldest, fill, group = up('<BBI2I7I7I7I7', head)
    local at = newest > now and newest or now
    local used = (k - 1) * group + fill
    local over = n > 0 and used - (quota - n) or 0
    if version ~= 1 or kind ~= 1 or group ~= size or oldest <= at - w or used >= MAX
      or over > group and n <= quota then break end
    local wait = 0
    if over > 0 then
      wait = n > quota and NEVER or oldest + w - at
      if ask ~= LOOK then admitted = false end
    elseif ask ~= LOOK and admitted then
      room = room and fill + n <= group
      heads[i] = pk('<I7I7I7', at, k > 1 and oldest or at, fill + n)
      local step = floor(w / 8) + 1
      local tick = at - at % step
      if newest < tick then lives[i] = tick + step + w end
      counted[i] = pk('<I7I7I7I7', used + n, used, 0, w)
    end
    denied[i] = pk('<I7I7I7I7', used, used, wait, newest + w - at)
    fast = i
  end
  if fast == total and (room or not admitted) then
    local reply = {pk('<BI7', DONE, now)}
    for i = 1, total do
      if admitted and counted[i] then
        call('SETRANGE', KEYS[first + i - 1], '4', heads[i])
        if lives[i] then call('PEXPIRE', KEYS[first + i - 1], floor((lives[i] - now + 999) / 1000) + slack) end
        reply[i + 1] = counted[i]
      else
        reply[i + 1] = denied[i]
      end
    end
    return table.concat(reply)
  end
end
