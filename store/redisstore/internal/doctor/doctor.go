// Package doctor checks whether a server fits the programs of the store, and how
// well. The checks are a pure function of what the server answered: package
// redisstore asks, and this package judges.
//
// A check refuses a server on which limits would not hold, or nothing would be
// counted, until someone changes it. It warns of what can lose counts or cause
// outages, and of what can end by itself, such as a full memory.
package doctor

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir/store/remote"
)

// Finding is the result of one check on one node.
type Finding = remote.Finding

// Facts are what a node answered, and what the store wants of it. Texts of
// commands that the node refused are empty.
type Facts struct {
	Node string
	Use  Use

	Info   string // of INFO: lines of name:value
	Hello  string // of HELLO: lines of name:value
	Config string // of CONFIG GET: lines of name value
	User   string // of ACL WHOAMI

	// Ran holds the commands that the node was asked to run, by name in capitals,
	// each with the node's error or an empty string. EVAL stands for [Probe],
	// STRUCT for Lua's struct library.
	Ran map[string]string

	// Raced is how many runs of [Race] were sent over two connections at the same
	// time, and Counted how many of them the key has counted. Raced is 0 when they
	// were not sent.
	Raced, Counted int

	RoundTrip time.Duration // median; 0 when it was not measured
	Ahead     time.Duration // the node's clock, ahead of this machine's

	Keys     []string // of one SCAN for the prefix
	KeysSeen bool     // SCAN was answered
}

// Use is what the store's configuration wants of a server.
type Use struct {
	Scheme       string // redis, redis+sentinel or redis+cluster, with TLS or without
	User         string // of the login
	Prefix       string
	Timeout      time.Duration
	WaitReplicas int
}

// cluster reports whether the URL names a cluster.
func (u *Use) cluster() bool { return strings.HasSuffix(u.Scheme, "+cluster") }

// checks are all checks, in the order of the report.
var checks = []struct {
	name string
	run  func(*server) Finding
}{
	{"engine", engine},
	{"version", version},
	{"topology", topology},
	{"scripting", scripting},
	{"struct", structs},
	{"atomic", atomic},
	{"rights", rights},
	{"role", role},
	{"eviction", eviction},
	{"persistence", persistence},
	{"replicas", replicas},
	{"clients", clients},
	{"round-trip", roundTrip},
	{"clock", clock},
	{"prefix", prefix},
}

// Check returns what the checks find in f, one finding for each check.
func Check(f *Facts) []Finding {
	s := read(f)
	all := make([]Finding, len(checks))
	for i, c := range checks {
		all[i] = c.run(s)
		all[i].Check, all[i].Node = c.name, f.Node
	}
	return all
}

// The checks make findings without the names of their check and node.

func ok(format string, args ...any) Finding {
	return Finding{Level: remote.LevelOK, Seen: fmt.Sprintf(format, args...)}
}

func unknown(seen string) Finding { return Finding{Level: remote.LevelUnknown, Seen: seen} }

func warn(seen, means, fix string) Finding {
	return Finding{Level: remote.LevelWarn, Seen: seen, Means: means, Fix: fix}
}

func refuse(seen, means, fix string) Finding {
	return Finding{Level: remote.LevelRefuse, Seen: seen, Means: means, Fix: fix}
}

// but returns f with what follows for limits.
func but(f Finding, means string) Finding {
	f.Means = means
	return f
}

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
// docs/guides/redis.md. [Probe] runs all but EVALSHA and PING.
var Commands = []string{
	"EVALSHA", "EVAL", "TIME", "PING", "GET", "MGET", "SET", "SETRANGE", "UNLINK", "PEXPIRE", "PTTL",
	"ZADD", "ZCARD", "ZCOUNT", "ZRANGE", "ZRANGEBYSCORE", "ZREM", "ZSCORE", "HGET", "HSET", "HDEL", "HGETALL",
}

// Settings are the settings that the checks read, where the server has them and
// shows them.
var Settings = []string{
	"maxmemory", "maxmemory-policy", "appendonly", "appendfsync", "save", "maxclients",
	"lua-transaction-mode", "default_lua_flags", "cache_mode",
}
