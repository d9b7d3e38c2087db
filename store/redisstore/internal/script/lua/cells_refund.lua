kinds[2].sub = function(o, n)
  if n >= o.sum then
    o.sum, o.cur, o.n, o.width = 0, 0, 0, o.want -- which a set adds to
    return
  end
  o.sum = o.sum - n
  local part = math.min(n, o.cur)
  o.cur, n = o.cur - part, n - part
  while n > 0 do
    local at = o.s + (o.n - 1) * 9
    local e, x = up('<I2I7', o.v, at)
    if x > n then
      o.v, o.s = cut(o.v, o.s, at - 1) .. pk('<I2I7', e, x - n), 1
      return
    end
    n, o.n = n - x, o.n - 1
  end
end
