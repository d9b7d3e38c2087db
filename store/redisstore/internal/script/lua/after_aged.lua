kinds[6].sub_at = function(o, at, n)
  local k = math.min(math.max(o.base_row.look(o.base, 0) - o.count + 1, 0), n)
  o.touched = k > 0 and not o.inner_row.sub_at(o.inner, at, k)
  o.base_row.sub_at(o.base, at, n)
end
