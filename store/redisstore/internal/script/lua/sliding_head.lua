-- The fixed part of the state, in a run, with what stands behind it.
local head = state or ''
