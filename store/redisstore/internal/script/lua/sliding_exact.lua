-- In a log that has a group for each hit, most takes add a group, and a few of the oldest
-- may have left the window. This file decides those; it needs the whole state.
if its_size == 1 and its_n == 1 and its_ask ~= LOOK and state and #state >= 39 then
  local kind, newest, oldest, fill, group, excess = up('<I4I7I7I7I7I7', state) -- as in sliding_fast.lua
  local at, k, dates = newest > now and newest or now, (kind - 257) / 65536, 40
  local edge = at - its_w
  if kind % 65536 == 257 and group == 1 and fill == 1 and newest > edge and #state == 32 + 7 * k then
    for _ = 1, 4 do
      if oldest > edge then break end
      dates, k, excess = dates + 7, k - 1, 0
      oldest = k > 1 and up('<I7', state, dates) or newest
    end
    if oldest > edge and k < its_quota then
      local ms = at - at % its_step + its_step + its_w - now + 999
      local begin = pk('<I4I7I7I7I7I7', 65793 + 65536 * k, at, oldest, 1, 1, excess)
      call('SET', key, begin .. string.sub(state, dates) .. pk('<I7', newest), 'PX', (ms - ms % 1000) / 1000 + slack)
      return decided(k + 1, k, 0, its_w)
    end
  end
end
