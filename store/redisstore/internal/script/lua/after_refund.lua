kinds[6].sub = function(o, n)
  local k = math.min(math.max(o.base_row.look(o.base, 0) - o.count + 1, 0), n)
  o.base_row.sub(o.base, n)
  if n > MAX then k = n end
  o.touched = k > 0
  if k > 0 then o.inner_row.sub(o.inner, k) end
end
