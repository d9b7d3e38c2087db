-- The head of every program. Package script joins a program from whole files: this one, one
-- that begins a call or a batch of calls, the fast path if the program has it, the kinds of
-- windows that the calls need, and call.lua or call_full.lua. The kinds do the same as package
-- window, on packed states: package window documents what they mean, and tests compare the
-- answers of both.
--
-- Numbers are whole and below 2^53. struct's I7 holds them. A server makes these names
-- anew at each call, so there are few of them.
local up, pk, call, try, KEYS, ARGV = struct.unpack, struct.pack, redis.call, redis.pcall, KEYS, ARGV

local MAX = 9007199254740991       -- window.MaxHits
local NEVER = 9007199254740992     -- the wait of hits that can never fit

local read = 0                     -- bytes of states that were read other than by the fast path

local cut, floor, type = string.sub, math.floor, type

-- What the caller asks for an op.
local LOOK, ENFORCE, SHADOW, RECORD, REFUND = 0, 1, 2, 3, 4 -- + 8: count it when it is not admitted
local UP_TO = 32 -- added to that: take no more hits than fit; the most that may fit follows the hits

-- A reply begins with a status and the instant. After DONE follow the numbers
-- of each op. With every other status nothing was counted, but for FAILED: the
-- server's error in one call of a batch. call_full.lua, fast_batch_end.lua and
-- once_begin.lua have the others.
local DONE, STALE, CLOCK, BROKEN, FOREIGN, FAILED = 0, 1, 2, 3, 4, 5
