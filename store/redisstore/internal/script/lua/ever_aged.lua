-- Hits of a hold in a window without an end: an instant is as good as another.
kinds[10].sub_at = function(o, _, n) o.used = math.max(o.used - n, 0) end

kinds[10].aged = {
  open = function(v, at) return kinds[10].open(v, 1, at) end,
  adopt = function(o) return o end,
  used = function(o) return o.used end,
  leaving = function() return function() return nil end end,
  begin = function() end,
  add = kinds[10].add,
  sub = kinds[10].sub,
  sub_at = kinds[10].sub_at,
  empty = function(o) o.used = 0 end,
  book = function(o, _, _, n) add_ever(o, n) end,
  leaves = function() return NEVER end,
  lasts = function() return NEVER end,
  expires = expires_ever,
  trim = function() end,
  save = save_ever,
}
