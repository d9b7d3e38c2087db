-- A use of a member is given back if the member was used last at the instant.
local function give_back_member(o, at, n)
  if not inside(o) then return end
  local date
  if o.set then
    date = floor(call('ZSCORE', o.set, o.member)) + EPOCH
  else
    date = up('<I7', o.v, find(o) + 16)
  end
  if date == at then sub_members(o, n) end
end

for number = 7, 9 do
  local row = rawget(kinds, number)
  if row then row.sub_at = give_back_member end
end
