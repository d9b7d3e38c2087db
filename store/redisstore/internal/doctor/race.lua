local n = tonumber(redis.call('GET', KEYS[1]) or '0')
local sum = 0
for i = 1, 10000 do sum = sum + i % 7 end
redis.call('SET', KEYS[1], string.format('%d', n + 1), 'PX', '10000')
return sum
