-- Returns the instant and what Redis keeps for a key: with ARGV[1] = 0 all of it, with -1 only the number of the
-- members in the sorted set and the one used last, because Redis decides nothing while it lists thousands.
local t = redis.call('TIME')
return {
  t[1] * 1000000 + t[2],
  redis.call('GET', KEYS[1]),
  redis.call('PTTL', KEYS[1]),
  redis.call('ZCARD', KEYS[2]),
  redis.call('ZRANGE', KEYS[2], ARGV[1], -1, 'WITHSCORES'),
  ARGV[1] == '0' and redis.call('HGETALL', KEYS[3]) or {},
}
