-- Writes the record of a call that was decided, unless that only denied a take and no other slot has a part of it.
local reply, denied_only = decide()
if type(reply) == 'string' and string.byte(reply) == 6 then -- FULL, of call_full.lua
  if once_drops == 1 then
    call('UNLINK', record_key)
  elseif not denied_only or once_drops == 2 then
    local record = pk('<I7', now + once_keep) .. once_own .. pk('<I4', #once_own) .. reply
    call('SET', record_key, record, 'PX', floor((once_keep + 999) / 1000) + slack)
  end
end
return reply
