-- In a mixed program make holds one function for each family of kinds, which
-- makes the rows of the family. It runs when the first op needs one of them: a
-- server makes the functions of a program anew at each call, and most calls
-- need few of them.
local make = {}
setmetatable(kinds, {__index = function(rows, code)
  make[code]()
  return rawget(rows, code)
end})
