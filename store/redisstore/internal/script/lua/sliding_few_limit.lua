-- The numbers of the ops of a step with few of them, and the argument that they were read
-- from: the steps of a run mostly have the same. A group of lines with an at sign stands
-- once for each op.
local few_known
local its_ask@, its_n@, its_quota@, its_w@, its_size@, its_step@
