-- What is decided for each op, by the index of its key: the hits used, the time until
-- it is unused, and the wait, if there is one.
local numbers, its_waits = {false, false, false, false, false, false}, {}
