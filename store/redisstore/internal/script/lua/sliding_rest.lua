-- The whole state, where only its fixed part was read.
if state == nil then state = try('GET', key) end
