-- The numbers of the ops that sliding_many_fast.lua has read, and the argument that it
-- read them from: the steps of a run mostly have the same. A program for one step reads
-- them once, and luacheck's settings say so.
local known
local its_asks, its_ns, its_quotas, its_spans, its_sizes, its_heads, its_lives = {}, {}, {}, {}, {}, {}, {}
