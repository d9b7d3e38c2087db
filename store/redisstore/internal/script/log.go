package script

// AddLog adds entries to the sorted set of a log: ARGV[4] is the score of ARGV[5], and so
// on, in microseconds since the Unix epoch. It drops entries that are older than ARGV[1]
// microseconds by the server's clock, and the oldest of more than ARGV[2], at most 1,000 of
// them. An entry of an instance whose clock is ahead gets the time of the server, so that it
// does not stay for longer. The key expires after ARGV[3] milliseconds.
const AddLog = `local key, time = KEYS[1], redis.call('TIME')
local now = time[1] * 1000000 + time[2]
for i = 4, #ARGV, 2 do
  if tonumber(ARGV[i]) > now then ARGV[i] = string.format('%.0f', now) end
end
redis.call('ZADD', key, unpack(ARGV, 4))
local oldest = string.format('%.0f', now - ARGV[1])
local old = math.max(redis.call('ZCARD', key) - ARGV[2], redis.call('ZCOUNT', key, '-inf', oldest))
if old > 0 then
  redis.call('ZREM', key, unpack(redis.call('ZRANGE', key, 0, math.min(old, 1000) - 1)))
end
return redis.call('PEXPIRE', key, ARGV[3])`
