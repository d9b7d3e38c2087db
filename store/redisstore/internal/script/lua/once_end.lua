-- Writes the record of a call that was decided.
local reply = decide(args, first, total, p)
if type(reply) == 'string' and string.byte(reply) == 6 then -- FULL, of call_full.lua
  if drops == 1 then
    call('DEL', record_key)
  else
    call('SET', record_key, pk('<I7', now + keep) .. own .. pk('<I4', #own) .. reply, 'PX', floor((keep + 999) / 1000) + slack)
  end
end
return reply
