-- A kind has an open function, by its code. It takes a state, where in it to
-- start (v is false for an unused key) and the instant; it reads the limit's
-- numbers from the args. What it gives answers as a window does:
--   look(o, n)  how much is used, and 0 if n more fit now, else when
--   add(o, n)   counts n hits
--   sub(o, n)   takes the newest n back; true when that changes nothing
--   expires(o)  when it is as good as unused; 0 when it is
--   save(o)     the state to keep, nil for none
local open = {}
local off = false -- the instant is outside the periods that came with the call
p = 17
