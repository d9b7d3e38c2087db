-- A call that is decided once: the rest of the program, which ends with once_end.lua, decides it
-- unless its record is there. The record is at the last key. The argument ends with the length of the
-- call's part of it, with what comes before the reply in a record:
--
--	I7  for how long it is kept, in microseconds; 0: the program only looks for it
--	B   1: the program drops the record, after it has decided; 2: it keeps that of any denial
--	c16 the digest of the request
--	    what the caller reads, see once.go
--
-- A record is the instant at which it ends, what the caller has sent from the digest on, its length,
-- and the reply.
local ONCE, CONFLICT, NONE = 8, 9, 10 -- statuses: a record follows; it is of another request; there is none
local once_size = up('<I4', args, #args - 3)
local once_keep, once_drops, once_at = up('<I7B', args, #args - 3 - once_size)
local once_own, record_key = cut(args, once_at, #args - 4), KEYS[#KEYS]
if once_drops ~= 1 then
  local v = try('GET', record_key)
  if type(v) == 'table' then return v end
  if v and up('<I7', v) > now then
    if cut(v, 8, 23) ~= cut(once_own, 1, 16) then return pk('<BI7', CONFLICT, now) end
    return pk('<BI7', ONCE, now) .. cut(v, 8)
  end
  if once_keep == 0 then return pk('<BI7', NONE, now) end
end
