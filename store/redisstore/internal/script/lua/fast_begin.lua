-- The states of several keys, read at once. An error means that the user may not do that:
-- each state is then read by itself. So are those of keys that hold something else
-- than a string, which read as if they were unused, and in a batch those of keys that
-- repeat earlier ones, which an earlier call may have changed.
local all = {}
if #KEYS > 1 and #KEYS <= 2000 and 2 * repeats <= #KEYS then -- Lua's bound; many calls may be for one key
  all = try('MGET', unpack(KEYS))
  if all.err then all = {} end
  for i = 1, repeats do all[up('<I2', plan, #plan + 1 - 2 * i)] = false end
end

-- What the fast path has decided, four numbers for each op by the index of its key: the hits
-- used, the hits used before, the wait, and the time until the key is unused; the argument
-- that was read last (known), seven values for each op: its kind, what is asked, the hits, and
-- up to four numbers of its limit; and what is to be written, six values for each op that counts
-- hits: the index of its key, what its function returns to be written, and the hits used then.
local numbers = {false, false, false, false, false, false, false, false, false, false, false, false}
local known
local asked = {false, false, false, false, false, false, false}
local writes = {
  false, false, false, false, false, false, false, false, false,
  false, false, false, false, false, false, false, false, false,
}
