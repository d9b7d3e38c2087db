-- Decides a fixed window for each key: compares the caller's deadline with the server's time,
-- reads and writes the state, and answers the hits used, the wait and the time until the key is
-- unused. ARGV has the length of the window in ms, the quota, and the deadlines in µs.
local t = redis.call('TIME')
local now, length, quota = t[1] * 1000000 + t[2], tonumber(ARGV[1]), tonumber(ARGV[2])
local out = {}
for i = 1, #KEYS do
  if now > tonumber(ARGV[2 + i]) then
    out[i] = struct.pack('<ddd', -1, 0, 0)
  else
    local used, ends, state = 0, now + length * 1000, redis.call('GET', KEYS[i])
    if state then used, ends = struct.unpack('<dd', state) end
    local wait = 0
    if used >= quota then
      wait = ends - now
    else
      used = used + 1
      redis.call('SET', KEYS[i], struct.pack('<dd', used, ends), 'PX', math.ceil((ends - now) / 1000))
    end
    out[i] = struct.pack('<ddd', used, wait, ends - now)
  end
end
return table.concat(out)
