package doctor

import _ "embed"

// Probe is a program that runs every command of the store's programs on three
// scratch keys of one slot, and deletes these. It answers with the name of each
// command, and its error or an empty string.
//
//go:embed probe.lua
var Probe string

// Race is a program that counts in a scratch key, slowly: it reads, computes for
// some 100 µs, and writes. Runs that do not exclude each other lose counts.
//
//go:embed race.lua
var Race string

// Commands are the rights that the store needs for its keys, as in the ACL of
// docs/redis.md. [Probe] runs all but EVALSHA and PING.
var Commands = []string{
	"EVALSHA", "EVAL", "TIME", "PING", "GET", "MGET", "SET", "SETRANGE", "DEL", "PEXPIRE", "PTTL",
	"ZADD", "ZCARD", "ZCOUNT", "ZRANGE", "ZREM", "ZSCORE", "HGET", "HSET", "HDEL", "HGETALL",
}

// Settings are the settings that the checks read, where the server has them and
// shows them.
var Settings = []string{
	"maxmemory", "maxmemory-policy", "appendonly", "appendfsync", "save", "maxclients",
	"lua-transaction-mode", "default_lua_flags", "cache_mode",
}
