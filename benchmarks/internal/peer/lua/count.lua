-- Counts each key. ARGV has the expiry in ms.
for i = 1, #KEYS do
  local n = tonumber(redis.call('GET', KEYS[i]) or '0')
  if n < 1000000000 then redis.call('SET', KEYS[i], n + 1, 'PX', ARGV[1]) end
end
return ''
