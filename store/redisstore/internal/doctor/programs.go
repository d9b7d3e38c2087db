package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// The checks in this file are about what the programs need: without it, limits
// would not hold.

func engine(s *server) verdict {
	switch s.engine {
	case redis:
		return ok("Redis")
	case valkey:
		v := ok("Valkey")
		v.means = "weir's tests pass on 8.0 and 9.1"
		return v
	case redict:
		v := ok("Redict")
		v.means = "weir's tests pass on 7.3"
		return v
	case "":
		if s.Info == "" {
			v := s.hidden("INFO", "+info")
			if name := s.hello["server"]; name != "" {
				v.seen = name + ", says HELLO"
			}
			return v
		}
		return verdict{
			level: Warn, seen: "an engine that weir does not know",
			means: "weir's tests never ran on it", fix: "use Redis or Valkey, or run weir's tests on it",
		}
	}
	return verdict{
		level: Warn, seen: s.engine,
		means: "weir's tests never ran on it", fix: "use Redis or Valkey, or run weir's tests on it",
	}
}

func version(s *server) verdict {
	v := s.version
	if v == "" {
		v = s.hello["version"]
	}
	if v == "" {
		return s.hidden("INFO", "+info")
	}
	major, _, known := release(v)
	old := known && major < 6 && (s.engine == redis || s.engine == keydb)
	if old {
		return verdict{
			level: Refuse, seen: v,
			means: "the programs need Redis 6 or later", fix: "upgrade the server",
		}
	}
	return ok("%s", v)
}

func topology(s *server) verdict {
	mode, wanted := s.mode(), s.Use.cluster()
	switch {
	case mode == "":
		return s.hidden("INFO", "+info")
	case mode == "sentinel":
		return verdict{
			level: Refuse, seen: "a Sentinel", means: "it keeps no data",
			fix: "write the URL as redis+sentinel://host:26379/name-of-the-primary",
		}
	case mode == "cluster" && !wanted:
		return verdict{
			level: Refuse, seen: "a cluster, and a URL for one server",
			means: "most keys belong to other nodes", fix: "write the URL as redis+cluster://",
		}
	case mode != "cluster" && wanted:
		return verdict{
			level: Refuse, seen: mode + ", and a URL for a cluster",
			means: "the server has no slots", fix: "write the URL as redis://",
		}
	}
	return ok("%s, as the URL", mode)
}

func scripting(s *server) verdict {
	problem, tried := s.Ran["EVAL"]
	switch {
	case !tried:
		return verdict{level: Unknown, seen: "no program was run"}
	case problem == "":
		return ok("programs run")
	case momentary(problem):
		return verdict{level: Warn, seen: problem, means: "calls meet outages until this ends"}
	case denied(problem):
		return verdict{
			level: Refuse, seen: problem, means: "weir counts with programs only",
			fix: "ACL SETUSER " + s.user() + " ~" + s.Use.Prefix + ":* +eval, and the other rights in docs/redis.md",
		}
	}
	fix := "turn on Lua scripting"
	if s.engine == garnet {
		fix = "start Garnet with --lua --lua-transaction-mode"
	}
	return verdict{level: Refuse, seen: problem, means: "weir counts with programs only", fix: fix}
}

func structs(s *server) verdict {
	problem, tried := s.Ran["STRUCT"]
	switch {
	case !tried:
		return verdict{level: Unknown, seen: "no program was run"}
	case problem != "":
		return verdict{
			level: Refuse, seen: problem, means: "the programs keep their numbers with Lua's struct library",
			fix: "use a server whose Lua has struct, as Redis and Valkey do",
		}
	}
	return ok("Lua's struct library keeps all numbers")
}

// atomic checks that programs with the same key run one after the other.
func atomic(s *server) verdict {
	const loss = "calls at the same time would be admitted over the quota"
	flags := s.setting("default_lua_flags")
	mode := strings.ToLower(s.setting("lua-transaction-mode"))
	locks := mode == "yes" || mode == "true"
	transactions := "start Garnet with --lua --lua-transaction-mode"
	switch {
	case s.Counted != s.Raced:
		v := verdict{
			level: Refuse, means: loss,
			fix: "use a server that runs programs one after the other, or locks their keys",
		}
		v.seen = fmt.Sprintf("%d runs of a program at the same time counted %d", s.Raced, s.Counted)
		if s.engine == garnet {
			v.fix = transactions
		}
		return v
	case strings.Contains(flags, "disable-atomicity"):
		return verdict{
			level: Refuse, seen: "default_lua_flags " + flags, means: loss,
			fix: "start Dragonfly without disable-atomicity",
		}
	case s.engine == garnet && mode != "" && !locks:
		return verdict{level: Refuse, seen: "LuaTransactionMode is off", means: loss, fix: transactions}
	case s.engine == garnet && !locks && s.Raced == 0:
		return verdict{level: Refuse, seen: "LuaTransactionMode is not shown, and no programs were run", means: "without this mode, " + loss, fix: transactions}
	case s.engine == garnet && !locks:
		return verdict{
			level: Warn, seen: fmt.Sprintf("LuaTransactionMode is not shown; %d runs at the same time were all counted", s.Raced),
			means: "without this mode, " + loss, fix: "make sure that " + strings.Replace(transactions, "start Garnet", "Garnet is started", 1),
		}
	case s.engine == redis, s.engine == valkey, s.engine == redict, s.engine == keydb:
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
	return verdict{level: Unknown, seen: "no programs were run at the same time"}
}

// rights checks that the user may run all commands that the programs need.
func rights(s *server) verdict {
	if s.Ran["EVAL"] != "" || len(s.Ran) == 0 {
		return verdict{level: Unknown, seen: "no program was run"}
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
		return verdict{
			level: Refuse, seen: user + " may not run all commands on keys " + s.Use.Prefix + ":*",
			means: "calls would fail", fix: "ACL SETUSER " + user + " ~" + s.Use.Prefix + ":* " + strings.Join(no, " "),
		}
	case len(unknown) > 0:
		return verdict{
			level: Refuse, seen: "the server has no " + strings.Join(unknown, ", "), means: "the programs need these commands",
			fix: "use Redis or Valkey",
		}
	case len(failed) > 0:
		return verdict{level: Warn, seen: failed[0], means: "calls that count meet outages until this ends"}
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
