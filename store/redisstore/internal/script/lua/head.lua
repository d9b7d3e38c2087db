-- The head of every program. A program is this file, one that begins a step or
-- a run of steps, one that reads the state or decides the common case, the kinds
-- of windows that the step needs, and call_one.lua or call_many.lua; package
-- script joins them. The kinds do the
-- same as package window, on packed states: package window documents what they
-- mean, and tests hold both to equal answers.
--
-- Numbers are whole and below 2^53. struct's I7 holds them. A server makes these names
-- anew at each call, so common calls are decided before those of head_rest.lua.
local up, pk, call, try, KEYS, ARGV = struct.unpack, struct.pack, redis.call, redis.pcall, KEYS, ARGV

local MAX = 9007199254740991       -- window.MaxHits
local NEVER = 9007199254740992     -- the wait of hits that can never fit

-- What the caller asks for an op; the others are in head_rest.lua.
local LOOK, RECORD = 0, 3

-- The status of a reply to a step that came too late.
local STALE = 1
