local slack = 1 -- milliseconds that a key outlives its state
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
else
  slack = 3600000
end
if deadline > 0 and now > deadline then return pk('<BI7', STALE, now) end
