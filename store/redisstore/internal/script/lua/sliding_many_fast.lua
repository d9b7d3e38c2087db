-- Does for several ops what sliding_fast.lua does for one: it decides calls for
-- which the fixed parts of all states are enough, and in which each op is either
-- a look or counted only if all ops admit it. Lua returns some 8,000 numbers at most.
if total <= 1000 then
  local admitted, room, fast, q = true, true, 0, p
  local heads, lives, adds, spans = {false, false, false}, {false, false, false}, {0, 0, 0}, {0, 0, 0}
  local numbers = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
  for i = 1, total do
    local _, ask, n, quota, w, size
    _, ask, n, quota, w, size, q = up('<BBI7I7I7I7', args, q)
    local key = KEYS[first + i - 1]
    local head = states[key] or try('GET', key) or ''
    if #head < 39 then break end
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
      lives[i] = newest < tick and tick + step + w
      adds[i], spans[i] = n, w
    end
    local last = 4 * i
    numbers[last - 3], numbers[last - 2], numbers[last - 1], numbers[last] = used, used, wait, newest + w - at
    fast = i
  end
  if fast == total and (room or not admitted) then
    for i = 1, total do
      if admitted and heads[i] then
        local key, last = KEYS[first + i - 1], 4 * i
        states[key] = nil
        call('SETRANGE', key, '4', heads[i])
        if lives[i] then call('PEXPIRE', key, floor((lives[i] - now + 999) / 1000) + slack) end
        numbers[last - 3], numbers[last] = numbers[last - 3] + adds[i], spans[i]
      end
    end
    return pk('<BI7' .. string.rep('I7I7I7I7', total), DONE, now, unpack(numbers, 1, 4 * total))
  end
  for i = 1, total do states[KEYS[first + i - 1]] = nil end
end
