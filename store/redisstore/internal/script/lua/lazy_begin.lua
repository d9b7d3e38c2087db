-- In a mixed program this function makes the row of a kind when the first op
-- needs it, from the files of the kind in a branch of its own. A server makes the
-- functions of a program anew at each call, and most calls need few kinds.
setmetatable(kinds, {__index = function(rows, code)
