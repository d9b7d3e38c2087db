-- Compares a deadline in µs with the server's time, and counts a key.
local t = redis.call('TIME')
if t[1] * 1000000 + t[2] > tonumber(ARGV[2]) then return 0 end
local n = tonumber(redis.call('GET', KEYS[1]) or '0')
if n < 1000000000 then redis.call('SET', KEYS[1], n + 1, 'PX', ARGV[1]) end
return n
