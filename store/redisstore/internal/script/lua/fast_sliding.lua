-- Package script says what this function and those of the other kinds get and return.

-- Three cases are decided here, besides the first hits of a key. Others need the rest of the
-- program:
--   * the fixed part of the state is enough: nothing has left the window, and the hits fit
--     into the newest group, or are denied and the date of the oldest group tells the wait
--   * up to four groups have left a log that has a group for each hit: their dates are read
--   * a log that has a group for each hit gets another one: the state is written anew
--
-- A sliding key lives up to an eighth of the window longer than its state: until
-- a multiple of that, so that most hits need not move its expiry.
local function fast_sliding(state, n, quota, w, size)
  local step = (w - w % 8) / 8 + 1
  if state == false then
    if n > size or n > quota then return end
    local ms = step - now % step + w + 999
    return 0, 0, 0, pk('<I4I7I7I7I7I7', 65793, now, now, n, size, 0), nil, (ms - ms % 1000) / 1000 + slack, w
  end
  if #state < 39 then return end
  -- kind is the version, 256 times the kind, and 65536 times the groups
  local kind, newest, oldest, fill, group, excess = up('<I4I7I7I7I7I7', state)
  local at = newest > now and newest or now
  local edge = at - w
  if kind % 65536 ~= 257 or newest <= edge then return end
  if group ~= size and (size == 1 or group < size or group >= 2 * size) then return end -- as add_sliding
  local groups, dates = (kind - 257) / 65536, 40
  if oldest <= edge then -- groups have left, which are hits here: not more than four of them
    if group > 1 or #state ~= 32 + 7 * groups then return end
    for _ = 1, 4 do
      if oldest > edge then break end
      dates, groups, excess = dates + 7, groups - 1, 0
      oldest = groups > 1 and up('<I7', state, dates) or newest
    end
    if oldest <= edge then return end
  end
  local used, reset = (groups - 1) * group + fill, newest + w - at
  if used >= MAX then return end
  local over = used - (quota - n)
  if n > 0 and over > 0 then
    if n <= quota and over > group then return end
    return used, n > quota and NEVER or oldest + w - at, reset
  end
  local tick = at - at % step
  local ms = tick + step + w - now + 999
  ms = (ms - ms % 1000) / 1000 + slack
  if dates == 40 and fill + n <= group then
    local head = pk('<I7I7I7', at, groups > 1 and oldest or at, fill + n)
    return used, 0, reset, head, '4', newest < tick and ms or nil, w
  end
  -- A log that has a group for each hit gets another one. It needs the whole state.
  if group > 1 or n ~= 1 or fill ~= 1 or #state ~= 32 + 7 * (kind - 257) / 65536 then return used, 0, reset end
  local head = pk('<I4I7I7I7I7I7', 65793 + 65536 * groups, at, oldest, 1, 1, excess)
  return used, 0, reset, head .. string.sub(state, dates) .. pk('<I7', newest), nil, ms, w
end
