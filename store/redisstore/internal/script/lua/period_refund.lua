local function sub_period(o, n)
  if n >= o.used then
    o.live, o.used = false, 0
  else
    o.used = o.used - n
  end
end
kinds[3].sub, kinds[4].sub = sub_period, sub_period
