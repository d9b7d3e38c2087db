package script

import (
	"fmt"
	"strings"
)

// Besides counters, the stores on one prefix have registers, logs and a secret in common.

// A register has three keys in one slot: a hash with the version ("v"), the version up to which
// removals are forgotten ("f") and the value of each field ("e" before its name); a sorted set of
// all fields by the version of their last change; and one of the fields that were removed.

// ChangeRegister sets the fields ARGV[3], ARGV[5], … of a register to the values that follow them if its
// version is ARGV[1], and otherwise returns 0. An empty value removes a field. It returns the version
// afterwards, which is later than the server's time in microseconds. The register expires ARGV[2] milliseconds after
// its last change, unless that is 0.
// Versions never return, also if the register was lost meanwhile. Of the fields that were removed, the
// newest 1,000 are remembered.
const ChangeRegister = `local now, removed = redis.call('TIME'), 0
local was = tonumber(redis.call('HGET', KEYS[1], 'v') or 0)
if was ~= tonumber(ARGV[1]) then return 0 end
local n = math.max(was, now[1] * 1000000 + now[2])
if was == 0 then redis.call('HSET', KEYS[1], 'f', string.format('%.0f', n)) end
for i = 3, #ARGV, 2 do
  local field, value = ARGV[i], ARGV[i + 1]
  n = n + 1
  local version = string.format('%.0f', n)
  if value == '' then
    redis.call('HDEL', KEYS[1], 'e' .. field)
    redis.call('ZADD', KEYS[3], version, field)
  else
    redis.call('HSET', KEYS[1], 'e' .. field, value)
    redis.call('ZREM', KEYS[3], field)
  end
  redis.call('ZADD', KEYS[2], version, field)
end
redis.call('HSET', KEYS[1], 'v', string.format('%.0f', n))
local over = redis.call('ZCARD', KEYS[3]) - 1000
if over > 0 then
  local old = redis.call('ZRANGE', KEYS[3], 0, math.min(over, 1000) - 1, 'WITHSCORES')
  for i = 1, #old, 2 do
    redis.call('ZREM', KEYS[2], old[i])
    redis.call('ZREM', KEYS[3], old[i])
  end
  redis.call('HSET', KEYS[1], 'f', old[#old])
end
if ARGV[2] ~= '0' then
  for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], ARGV[2]) end
end
return n`

// ReadRegister returns what changed in a register after version ARGV[1] for a caller that began to read
// when it had version ARGV[2]: whether the caller has to drop what it knew, because that version is not
// one of the register or too old; both versions for the next call; and at most ARGV[3] fields, each with its
// value, which is empty if it was removed.
const ReadRegister = `local version = tonumber(redis.call('HGET', KEYS[1], 'v') or 0)
local forgotten = tonumber(redis.call('HGET', KEYS[1], 'f') or 0)
local since, begun, again = tonumber(ARGV[1]), tonumber(ARGV[2]), 0
if begun < forgotten or since > version then since, begun, again = 0, version, 1 end
local changed = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. string.format('%.0f', since), '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[3])
if #changed == 2 * tonumber(ARGV[3]) then
  version = tonumber(changed[#changed])
else
  begun = version
end
local answer = {again, version, begun}
for i = 1, #changed, 2 do
  answer[#answer + 1] = changed[i]
  answer[#answer + 1] = redis.call('HGET', KEYS[1], 'e' .. changed[i]) or ''
end
return answer`

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

// The secret under which the stores on one prefix seal receipts has its own key
// ([keyname.Names.Secret]), which never expires. Its value is a version, the code of a
// secret, and its bytes, as [remote.Secrets] has them.
const codeSecret byte = 14 // after the codes of states

// EncodeSecret returns the value of the key of a secret.
func EncodeSecret(secret []byte) string {
	return string(append([]byte{version, codeSecret}, secret...))
}

// DecodeSecret returns the secret that has the value, which is at key.
func DecodeSecret(key, value string) ([]byte, error) {
	body, ok := strings.CutPrefix(value, string([]byte{version, codeSecret}))
	if !ok {
		return nil, fmt.Errorf("key %q holds no secret that this version can read; delete it or use another prefix", key)
	}
	return []byte(body), nil
}

// RotateSecret makes ARGV[2] the value of the key of a secret if that is still ARGV[1].
// It returns whether it was.
const RotateSecret = `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1`

// isSecret reports whether a state is a secret.
func isSecret(state string) bool {
	return len(state) > 1 && state[0] == version && state[1] == codeSecret
}
