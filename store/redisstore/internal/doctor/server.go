package doctor

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
)

// The engines that the checks can tell apart.
const (
	redis     = "Redis"
	valkey    = "Valkey"
	redict    = "Redict"
	keydb     = "KeyDB"
	dragonfly = "Dragonfly"
	kvrocks   = "Kvrocks"
	garnet    = "Garnet"
)

// server is facts that have been read.
type server struct {
	*Facts
	info, hello, config map[string]string
	engine, version     string // empty when unknown
}

func read(f *Facts) *server {
	s := &server{
		Facts: f,
		info:  fields(f.Info, ":"), hello: fields(f.Hello, ":"), config: fields(f.Config, " "),
	}
	s.engine, s.version = s.identify()
	return s
}

// fields reads lines of name, separator and value. Names are in lower case.
func fields(text, separator string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), separator)
		if name != "" && !strings.HasPrefix(name, "#") {
			all[strings.ToLower(name)] = strings.TrimSpace(value)
		}
	}
	return all
}

// likeRedis reports whether the engine is made from Redis's own code.
func (s *server) likeRedis() bool {
	return slices.Contains([]string{redis, valkey, redict, keydb}, s.engine)
}

// identify returns the engine and its own version. Most engines answer with
// Redis's fields and a version of Redis that they are compatible with, so their
// own fields come first.
func (s *server) identify() (engine, version string) {
	for _, e := range []struct{ field, engine string }{
		{"dragonfly_version", dragonfly},
		{"kvrocks_version", kvrocks},
		{"garnet_version", garnet},
		{"valkey_version", valkey},
		{"redict_version", redict},
	} {
		if v, ok := s.info[e.field]; ok {
			return e.engine, strings.TrimPrefix(strings.TrimPrefix(v, "df-"), "v")
		}
	}
	v := s.info["redis_version"]
	_, mvcc := s.info["mvcc_depth"]
	_, threads := s.info["thread_0_clients"]
	program := path.Base(s.info["executable"])
	switch {
	case v == "":
		return "", ""
	case mvcc || threads || strings.HasPrefix(program, "keydb"):
		return keydb, v
	case s.others():
		return "", v
	}
	return redis, v
}

// others reports whether INFO has the version of an engine that the checks do
// not know, such as upstash_version.
func (s *server) others() bool {
	for name := range s.info {
		switch product, ok := strings.CutSuffix(name, "_version"); {
		case !ok, product == "redis", product == "gcc", product == "clang", product == "rocksdb":
		default:
			return true
		}
	}
	return false
}

// user returns the name of the user whose rights count.
func (s *server) user() string { return cmp.Or(s.User, s.Use.User) }

// hidden returns the verdict of a check that needs a command which the node
// refused.
func (s *server) hidden(command string) Finding {
	v := but(unknown("not shown to this user"), "the check needs "+command)
	v.Fix = "ACL SETUSER " + s.user() + " " + right(command) + ", for the checks only"
	return v
}

// mode returns standalone, cluster or sentinel, and an empty string when it is
// unknown.
func (s *server) mode() string {
	mode := cmp.Or(s.info["redis_mode"], s.info["server_mode"], s.hello["mode"])
	if mode == "" && s.info["cluster_enabled"] == "1" {
		return "cluster"
	}
	return mode
}

// setting returns a setting as CONFIG GET shows it, or as INFO does.
func (s *server) setting(name string) string {
	if v, ok := s.config[name]; ok {
		return v
	}
	return s.info[strings.ReplaceAll(name, "-", "_")]
}

// number returns a field of INFO, or a setting, as a number.
func (s *server) number(name string) (int64, bool) {
	n, err := strconv.ParseInt(s.setting(name), 10, 64)
	return n, err == nil
}
