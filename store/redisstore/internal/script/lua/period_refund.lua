local function sub_period(o, n)
  if n >= o.used then
    o.live, o.used = false, 0
  else
    o.used = o.used - n
  end
end

for number = 3, 4 do
  local row = rawget(kinds, number)
  if row then row.sub = sub_period end
end
