-- Decides a call whose ops are all of the kinds of the fast path, each of which is either a
-- look or counted only if all ops admit it. It writes when all ops are decided, and leaves the
-- call to the rest of the program otherwise, as one of more than 1,000 ops: Lua returns some
-- 8,000 numbers at most. The calls of a batch mostly ask the same, which is read once.
local all_fit, decided, some = true, 0, 0
if known ~= args and total <= 1000 then
  known = args
  local q = p
  for m = 1, 7 * total, 7 do
    local kind
    kind, asked[m + 1], asked[m + 2], asked[m + 3], asked[m + 4], q = up('<BBI7I7I7', args, q)
    asked[m] = kind
    if kind == 1 then
      asked[m + 5], q = up('<I7', args, q)
      q = q + 9 -- what bounds the hits that are recorded
    elseif kind == 5 then
      asked[m + 5], asked[m + 6], q = up('<I7I7', args, q)
    end
  end
end
if total <= 1000 then
  for i = 1, total do
    local k, m = first + i - 1, 7 * i
    local state = all[k] or try('GET', KEYS[k])
    if type(state) == 'table' then break end -- an error
    local kind, ask, n = asked[m - 6], asked[m - 5], asked[m - 4]
    local used, wait, reset, bytes, from, ms, lasts
    if kind == 1 then
      used, wait, reset, bytes, from, ms, lasts = fast_sliding(state, n, asked[m - 3], asked[m - 2], asked[m - 1])
    elseif kind == 3 then
      used, wait, reset, bytes, from, ms, lasts = fast_fixed(state, n, asked[m - 3], asked[m - 2])
    else
      used, wait, reset, bytes, from, ms, lasts =
        fast_bucket(state, n, asked[m - 3], asked[m - 2], asked[m - 1], asked[m])
    end
    if not used then break end
    m = 4 * k
    numbers[m - 3], numbers[m - 2], numbers[m - 1], numbers[m] = used, used, wait, reset
    if ask ~= LOOK then
      if wait ~= 0 then
        all_fit = false
      else
        writes[some + 1], writes[some + 2], writes[some + 3], writes[some + 4], writes[some + 5], writes[some + 6] =
          k, bytes or false, from or false, ms or false, used + n, lasts
        some = some + 6
      end
    end
    decided = i
  end
end
if not all_fit then some = 0 end
for i = 2, some, 6 do -- hits that fit, but not into what fast_sliding.lua can write
  if not writes[i] then decided = 0 end
end
if decided == total then
  for i = 1, some, 6 do
    local k, bytes, from, ms = writes[i], writes[i + 1], writes[i + 2], writes[i + 3]
    if from then
      call('SETRANGE', KEYS[k], from, bytes)
      if ms then call('PEXPIRE', KEYS[k], ms) end
    else
      call('SET', KEYS[k], bytes, 'PX', ms)
    end
    numbers[4 * k - 3], numbers[4 * k] = writes[i + 4], writes[i + 5]
  end
end
