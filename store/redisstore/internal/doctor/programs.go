package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The checks in this file are about what the programs need: without it, limits
// would not hold.

func engine(s *server) Finding {
	switch s.engine {
	case redis:
		return ok("Redis")
	case valkey:
		return but(ok("Valkey"), "weir's tests pass on 8.0 and 9.1")
	case redict:
		return but(ok("Redict"), "weir's tests pass on 7.3")
	case "":
		if s.Info == "" {
			v := s.hidden("INFO")
			if name := s.hello["server"]; name != "" {
				v.Seen = name + ", says HELLO"
			}
			return v
		}
	}
	return warn(cmp.Or(s.engine, "an engine that weir does not know"), "weir's tests never ran on it", "use Redis or Valkey, or run weir's tests on it")
}

func version(s *server) Finding {
	v := cmp.Or(s.version, s.hello["version"])
	if v == "" {
		return s.hidden("INFO")
	}
	number, _, _ := strings.Cut(v, ".")
	major, err := strconv.Atoi(number)
	if err == nil && major < 6 && (s.engine == redis || s.engine == keydb) {
		return refuse(v, "the programs need Redis 6 or later", "upgrade the server")
	}
	return ok("%s", v)
}

func topology(s *server) Finding {
	mode, wanted := s.mode(), s.Use.cluster()
	switch {
	case mode == "":
		return s.hidden("INFO")
	case mode == "sentinel":
		return refuse("a Sentinel", "it keeps no data", "write the URL as redis+sentinel://host:26379/name-of-the-primary")
	case mode == "cluster" && !wanted:
		return refuse("a cluster, and a URL for one server", "most keys belong to other nodes", "write the URL as redis+cluster://")
	case mode != "cluster" && wanted:
		return refuse(mode+", and a URL for a cluster", "the server has no slots", "write the URL as redis://")
	}
	return ok("%s, as the URL", mode)
}

func scripting(s *server) Finding {
	problem, tried := s.Ran["EVAL"]
	switch {
	case !tried:
		return unknown("no program was run")
	case problem == "":
		return ok("programs run")
	case momentary(problem):
		return warn(problem, "calls meet outages until this ends", "")
	case denied(problem):
		return refuse(problem, "weir counts with programs only",
			"ACL SETUSER "+s.user()+" ~"+s.Use.Prefix+":* +eval, and the other rights in docs/guides/redis.md")
	}
	fix := "turn on Lua scripting"
	if s.engine == garnet {
		fix = "start Garnet with --lua --lua-transaction-mode"
	}
	return refuse(problem, "weir counts with programs only", fix)
}

func structs(s *server) Finding {
	problem, tried := s.Ran["STRUCT"]
	switch {
	case !tried:
		return unknown("no program was run")
	case problem != "":
		return refuse(problem, "the programs keep their numbers with Lua's struct library",
			"use a server whose Lua has struct, as Redis and Valkey do")
	}
	return ok("Lua's struct library keeps all numbers")
}

// atomic checks that programs with the same key run one after the other.
func atomic(s *server) Finding {
	const loss = "calls at the same time would be admitted over the quota"
	flags := s.setting("default_lua_flags")
	mode := strings.ToLower(s.setting("lua-transaction-mode"))
	locks := mode == "yes" || mode == "true"
	transactions := "start Garnet with --lua --lua-transaction-mode"
	switch {
	case s.Counted != s.Raced:
		fix := "use a server that runs programs one after the other, or locks their keys"
		if s.engine == garnet {
			fix = transactions
		}
		return refuse(fmt.Sprintf("%d runs of a program at the same time counted %d", s.Raced, s.Counted), loss, fix)
	case strings.Contains(flags, "disable-atomicity"):
		return refuse("default_lua_flags "+flags, loss, "start Dragonfly without disable-atomicity")
	case s.engine == garnet && mode != "" && !locks:
		return refuse("LuaTransactionMode is off", loss, transactions)
	case s.engine == garnet && !locks && s.Raced == 0:
		return refuse("LuaTransactionMode is not shown, and no programs were run", "without this mode, "+loss, transactions)
	case s.engine == garnet && !locks:
		return warn(fmt.Sprintf("LuaTransactionMode is not shown; %d runs at the same time were all counted", s.Raced), "without this mode, "+loss,
			"make sure that "+strings.Replace(transactions, "start Garnet", "Garnet is started", 1))
	case s.likeRedis():
		return ok("one program at a time")
	case s.engine == dragonfly:
		return ok("programs lock their keys")
	case s.engine == kvrocks:
		return ok("one program at a time, or programs lock their keys")
	case s.engine == garnet:
		return ok("LuaTransactionMode: programs lock their keys")
	case s.Raced > 0:
		return ok("%d runs of a program at the same time were all counted", s.Raced)
	}
	return unknown("no programs were run at the same time")
}

// rights checks that the user may run all commands that the programs need.
func rights(s *server) Finding {
	if s.Ran["EVAL"] != "" || len(s.Ran) == 0 {
		return unknown("no program was run")
	}
	wanted := slices.Clone(Commands)
	if s.Use.cluster() {
		wanted = append(wanted, "CLUSTER SLOTS", "ASKING")
	}
	if s.Use.WaitReplicas > 0 {
		wanted = append(wanted, "WAIT")
	}
	var no, unknown, failed []string
	for _, c := range wanted {
		switch problem := s.Ran[c]; {
		case problem == "", strings.HasPrefix(problem, "NOSCRIPT"):
		case denied(problem):
			no = append(no, right(c))
		case strings.Contains(strings.ToLower(problem), "unknown"):
			unknown = append(unknown, c)
		default:
			failed = append(failed, c+": "+problem)
		}
	}
	user := s.user()
	switch {
	case len(no) > 0:
		return refuse(user+" may not run all commands on keys "+s.Use.Prefix+":*", "calls would fail",
			"ACL SETUSER "+user+" ~"+s.Use.Prefix+":* "+strings.Join(no, " "))
	case len(unknown) > 0:
		return refuse("the server has no "+strings.Join(unknown, ", "), "the programs need these commands", "use Redis or Valkey")
	case len(failed) > 0:
		return warn(failed[0], "calls that count meet outages until this ends", "")
	}
	return ok("%s may run all %d commands", user, len(wanted))
}

// right returns an ACL rule that allows a command.
func right(command string) string {
	return "+" + strings.ReplaceAll(strings.ToLower(command), " ", "|")
}

// denied reports whether an error is about rights. Inside programs, and in older
// versions, Redis says so in words.
func denied(problem string) bool {
	low := strings.ToLower(problem)
	for _, part := range []string{"noperm", "no permission", "can't run this command", "can't access", "noauth"} {
		if strings.Contains(low, part) {
			return true
		}
	}
	return false
}

// momentary reports whether an error can end by itself.
func momentary(problem string) bool {
	word, _, _ := strings.Cut(problem, " ")
	return slices.Contains([]string{
		"LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "READONLY", "MISCONF", "OOM", "TRYAGAIN", "NOREPLICAS", "MOVED", "ASK",
	}, word)
}
