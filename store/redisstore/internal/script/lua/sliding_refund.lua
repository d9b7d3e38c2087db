kinds[1].sub = function(o, n)
  if n > MAX then
    o.k = 0
    return
  end
  local eaten = math.min(n, o.excess)
  o.excess, n = o.excess - eaten, n - eaten
  local k, group = o.k, o.group
  if k == 0 or n >= (k - 1) * group + o.fill then
    o.k = 0
  elseif n < o.fill then
    o.fill = o.fill - n
  else
    n = n - o.fill
    k = k - 1 - floor(n / group)
    o.k, o.fill, o.newest = k, group - n % group, up('<I7', o.v, o.s + (k - 1) * 7)
  end
end
