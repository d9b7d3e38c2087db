local text, zset, hash = KEYS[1], KEYS[2], KEYS[3]
local out = {}
local function try(name, ...)
  local reply = redis.pcall(name, ...)
  out[#out + 1] = name
  out[#out + 1] = type(reply) == 'table' and reply.err or ''
end
try('TIME')
try('SET', text, '0123456789', 'PX', '10000')
try('GET', text)
try('MGET', text, text)
try('SETRANGE', text, '0', 'ab')
try('PEXPIRE', text, '10000')
try('PTTL', text)
try('ZADD', zset, '1', 'a')
redis.pcall('PEXPIRE', zset, '10000')
try('ZCARD', zset)
try('ZCOUNT', zset, '0', '2')
try('ZRANGE', zset, '0', '-1', 'WITHSCORES')
try('ZRANGEBYSCORE', zset, '0', '2')
try('ZSCORE', zset, 'a')
try('ZREM', zset, 'a')
try('HSET', hash, 'a', '1')
redis.pcall('PEXPIRE', hash, '10000')
try('HGET', hash, 'a')
try('HGETALL', hash)
try('HDEL', hash, 'a')
try('UNLINK', text, zset, hash)
local fine, same = pcall(function()
  local packed = struct.pack('<BI2I7', 7, 513, 9007199254740991)
  local a, b, c = struct.unpack('<BI2I7', packed)
  return #packed == 10 and a == 7 and b == 513 and c == 9007199254740991
end)
out[#out + 1] = 'STRUCT'
out[#out + 1] = not fine and tostring(same) or same and '' or 'other numbers come out than went in'
return out
