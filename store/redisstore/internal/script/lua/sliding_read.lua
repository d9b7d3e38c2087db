-- The state of the one op. Most calls need only the fixed part of it.
local state, head
if its_size == 1 then -- most of these calls need all of it
  state = try('GET', key)
  head = state or ''
else
  head = try('GETRANGE', key, '0', '38')
end
