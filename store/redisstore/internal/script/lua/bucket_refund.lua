kinds[5].sub = function(o, n)
  if o.cap == 0 or n > MAX then
    o.d, o.f = 0, 0
    return
  end
  local q, r = times(n, o.length, o.quota)
  local d, f = o.d - q, o.f - r
  if f < 0 then d, f = d - 1, f + o.quota end
  if d < 0 then d, f = 0, 0 end
  o.d, o.f = d, f
end
