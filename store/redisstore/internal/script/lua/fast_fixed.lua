-- See package script.
local function fast_fixed(state, n, quota, w)
  if state == false then
    if n > quota or n > MAX then return end
    local ms = w + 999
    return 0, 0, 0, pk('<I2I7I7', 769, now, n), nil, (ms - ms % 1000) / 1000 + slack, w
  end
  if #state ~= 16 then return end
  local kind, mark, used = up('<I2I7I7', state)
  local reset = mark + w - (mark > now and mark or now)
  if kind ~= 769 or reset <= 0 or used + n > MAX then return end
  if n > 0 and used + n > quota then return used, n > quota and NEVER or reset, reset end
  return used, 0, reset, pk('<I7', used + n), '9', nil, reset
end
