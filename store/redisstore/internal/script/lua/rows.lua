-- Each kind of window has a row here, by its code, with these functions:
--   open(v, i, at, k)  reads the state that starts at byte i of v, or an unused
--                      one if v is false, at the instant at; reads the limit's
--                      numbers from the argument. k is the index in KEYS of the
--                      first key after the state's.
--   look(o, n)         returns the hits used, and 0 if n more fit now, else the
--                      instant at which they fit
--   add(o, n)          counts n hits, MAX at most
--   sub(o, n)          takes the newest n hits back, all of them if n is above
--                      MAX; returns true if that changes nothing. Only programs
--                      for refunds have it.
--   save(o)            returns the state to keep, and until when; nil for none
--   expires(o)         returns when the state is as good as unused; 0 if it is
-- A row may also hold keys, the number of keys that an op of the kind has if it
-- is not 1, and parts, true if a take may add less than its hits to what is
-- used.
local kinds = {}
local off = false -- an instant that is outside the periods in the argument
