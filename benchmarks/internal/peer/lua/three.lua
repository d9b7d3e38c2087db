-- Counts three keys together if all of them have room. ARGV has the expiry in ms.
for i = 1, #KEYS, 3 do
  local a, b, c = KEYS[i], KEYS[i + 1], KEYS[i + 2]
  local n, m, o = redis.call('GET', a), redis.call('GET', b), redis.call('GET', c)
  n, m, o = tonumber(n or '0'), tonumber(m or '0'), tonumber(o or '0')
  if n < 1000000000 and m < 1000000000 and o < 1000000000 then
    redis.call('SET', a, n + 1, 'PX', ARGV[1])
    redis.call('SET', b, m + 1, 'PX', ARGV[1])
    redis.call('SET', c, o + 1, 'PX', ARGV[1])
  end
end
return ''
