kinds[10].sub = function(o, n)
  o.used = math.max(o.used - n, 0)
end
