package script

// AddLog adds entries to the sorted set of a log: ARGV[4] is the score of ARGV[5], and so
// on. It drops entries with scores up to ARGV[1], and the oldest of more than ARGV[2], at
// most 1,000 of them. The key expires after ARGV[3] milliseconds.
const AddLog = `local key = KEYS[1]
redis.call('ZADD', key, unpack(ARGV, 4))
local old = math.max(redis.call('ZCARD', key) - ARGV[2], redis.call('ZCOUNT', key, '-inf', ARGV[1]))
if old > 0 then
  redis.call('ZREM', key, unpack(redis.call('ZRANGE', key, 0, math.min(old, 1000) - 1)))
end
return redis.call('PEXPIRE', key, ARGV[3])`
