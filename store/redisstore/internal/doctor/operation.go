package doctor

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// The checks in this file are about what can lose counts or cause outages. None
// refuses a server.

func role(s *server) Finding {
	switch cmp.Or(s.info["role"], s.hello["role"]) {
	case "":
		return s.hidden("INFO")
	case "active-replica":
		return warn("one of several primaries that copy each other", "each counts what its own callers do, before it learns of the others",
			"one primary, and replicas that only copy")
	case "slave", "replica":
		return warn("a replica", "calls that count meet outages", "use the primary's address, or redis+sentinel://, which finds it")
	}
	return ok("a primary")
}

// eviction checks what happens when the memory is full. All of weir's keys have a
// time to live, so that policies for such keys concern all of them.
func eviction(s *server) Finding {
	maxmemory, known := s.number("maxmemory")
	policy := s.setting("maxmemory-policy")
	cache := s.setting("cache_mode")
	if s.engine == dragonfly {
		policy = "noeviction"
		if cache == "cache" || cache == "true" || cache == "yes" {
			policy = "cache_mode"
		}
	}
	var lost string
	switch {
	case s.engine == kvrocks:
		return ok("none: keys are on disk")
	case s.engine == garnet:
		return ok("none: Garnet has no maxmemory-policy")
	case s.Info == "" && policy == "":
		return s.hidden("INFO")
	case !known || policy == "":
		return unknown("the server does not show maxmemory and maxmemory-policy")
	case maxmemory == 0:
		return ok("%s, no maxmemory", policy)
	case policy == "noeviction":
		return but(ok("noeviction at %s", bytes(maxmemory)), "when the memory is full, calls that count meet outages")
	case policy == "volatile-ttl":
		lost = "the keys that expire soonest"
	case strings.HasSuffix(policy, "-random"):
		lost = "any keys"
	case strings.HasSuffix(policy, "-lfu"):
		lost = "the least frequently used keys"
	case strings.HasSuffix(policy, "-lru"):
		lost = "the least recently used keys, such as exhausted ones of long windows"
	default:
		lost = "keys"
	}
	if strings.HasPrefix(policy, "allkeys-") {
		lost += ", and overrides"
	}
	v := warn(policy+" at "+bytes(maxmemory), "when memory is full, the server drops "+lost+"; a dropped key admits up to its quota once more",
		"CONFIG SET maxmemory-policy noeviction")
	if s.engine == dragonfly {
		v.Fix = "start Dragonfly without --cache_mode"
	}
	if n, _ := s.number("evicted_keys"); n > 0 {
		v.Seen += fmt.Sprintf(", %d keys evicted so far", n)
	}
	return v
}

func persistence(s *server) Finding {
	aof := s.info["aof_enabled"] == "1" || s.setting("appendonly") == "yes"
	save, shown := s.config["save"]
	switch {
	case s.engine == kvrocks:
		return ok("on disk")
	case s.Info == "" && !shown:
		return s.hidden("INFO")
	case aof && s.setting("appendfsync") == "no":
		return but(ok("append-only file, written when the system likes"), "a crash of the machine loses the last half minute")
	case aof:
		return but(ok("append-only file"), "a crash loses the last second at most")
	case !s.likeRedis():
		return unknown("no append-only file; snapshots are not looked at")
	case shown && save == "":
		return warn("neither append-only file nor snapshots", "after a restart all limits start from nothing", "CONFIG SET appendonly yes")
	case !shown:
		v := unknown("no append-only file; snapshots are not shown to this user")
		v.Fix = "ACL SETUSER " + s.user() + " +config|get, for the checks only"
		return v
	}
	return but(ok("snapshots only"), "a restart goes back to the last one, and what came after is admitted once more")
}

// replicas checks that as many replicas are in step as have to confirm.
func replicas(s *server) Finding {
	if s.Info == "" {
		return s.hidden("INFO")
	}
	online := 0
	for name, value := range s.info {
		_, number, slave := strings.Cut(name, "slave")
		if slave && number != "" && strings.Trim(number, "0123456789") == "" && strings.Contains(value, "state=online") {
			online++
		}
	}
	want := s.Use.WaitReplicas
	switch {
	case online < want:
		return warn(fmt.Sprintf("%d in step, and wait_replicas=%d", online, want), "calls that count meet outages",
			"start the replicas, or lower wait_replicas")
	case want > 0:
		return ok("%d in step, of which %d must confirm", online, want)
	}
	v := ok("%d in step, no confirmation wanted", online)
	if online > 0 {
		v.Means = "a failover loses the counts that had not reached the replica"
	}
	return v
}

// connections is for how many connections of a store there should be room: more
// than it opens when it does not wait for replicas.
const connections = 16

// confirming is how many more connections a store with wait_replicas has.
const confirming = 4

// clients checks that there is room for connections.
func clients(s *server) Finding {
	limit, known := s.number("maxclients")
	now, _ := s.number("connected_clients")
	want := int64(connections)
	if s.Use.WaitReplicas > 0 {
		want += confirming
	}
	switch {
	case s.Info == "" && !known:
		return s.hidden("INFO")
	case !known || limit == 0:
		return ok("%d connected, no limit shown", now)
	case limit-now < want:
		return warn(fmt.Sprintf("%d of maxclients %d connected", now, limit), fmt.Sprintf("an instance of weir may need %d; connections above the limit are refused", want),
			"CONFIG SET maxclients, or close other clients")
	}
	v := ok("%d of maxclients %d connected", now, limit)
	if n, _ := s.number("rejected_connections"); n > 0 {
		v.Seen += fmt.Sprintf(", %d rejected so far", n)
	}
	return v
}

// roundTrip checks that calls have time for their way.
func roundTrip(s *server) Finding {
	switch {
	case s.RoundTrip == 0:
		return unknown("not measured")
	case s.Use.Timeout > 0 && 2*s.RoundTrip > s.Use.Timeout:
		return warn(fmt.Sprintf("%v, with a time-out of %v", short(s.RoundTrip), s.Use.Timeout), "calls that take twice as long as most are outages",
			fmt.Sprintf("--store-timeout %v, or a server nearby", (4*s.RoundTrip).Round(5*time.Millisecond)+5*time.Millisecond))
	}
	return ok("%v, with a time-out of %v", short(s.RoundTrip), s.Use.Timeout)
}

// far is how far clocks may be apart without a warning.
const far = time.Second

func clock(s *server) Finding {
	switch {
	case s.RoundTrip == 0:
		return unknown("not measured")
	case s.Ahead.Abs() > far:
		direction := "ahead of"
		if s.Ahead < 0 {
			direction = "behind"
		}
		return warn(fmt.Sprintf("%v %s this machine's", short(s.Ahead.Abs()), direction), "windows follow the server's clock, logs and memory in an outage this machine's",
			"run an NTP client on both")
	}
	return ok("%v apart", short(s.Ahead.Abs()))
}

// own matches the part of a key's name after the prefix; see the package script.
var own = regexp.MustCompile(`^(\{[^{}]*\}:.+:([0-9a-f]{16}|[0-9a-f]{32})(:[zu])?|secret|log:.+|kept:\{[^{}]+\}(:(changed|removed))?)$`)

// prefix looks for keys of other programs.
func prefix(s *server) Finding {
	if !s.KeysSeen {
		return s.hidden("SCAN")
	}
	foreign, first := 0, ""
	for _, key := range s.Keys {
		rest, with := strings.CutPrefix(key, s.Use.Prefix+":")
		if !with || own.MatchString(rest) {
			continue
		}
		foreign++
		if first == "" || key < first {
			first = key
		}
	}
	if foreign > 0 {
		return warn(fmt.Sprintf("keys of another program (%d of %d seen), such as %q", foreign, len(s.Keys), first), "requests meet an outage where such a key has the name of a counter",
			"another prefix for one of the two: ?prefix=NAME in the URL")
	}
	return ok("no keys of other programs among the %d seen", len(s.Keys))
}

// short rounds d to three digits or so.
func short(d time.Duration) time.Duration {
	for unit := time.Microsecond; ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit)
		}
	}
}

// bytes returns n with a unit.
func bytes(n int64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	i := 0
	f := float64(n)
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0") + " " + units[i]
}
