// Package config is what the service can be told: its defaults, and the
// checks that find every fault at once. Where the values come from, flags or a
// file, is the caller's business.
package config

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/fault"
)

// Config is the configuration of the service. Start from [Default]; the zero
// value is not valid.
type Config struct {
	// Rules is the path of the rules file. Empty runs the demo rule.
	Rules string

	// Koala is the path of a rule file of koala's, in place of Rules.
	Koala string

	// KoalaListen is the address of koala's calls; see [Config.KoalaAddr].
	KoalaListen string

	// KoalaToken is what a caller shows who rewrites the file Koala. Empty:
	// nobody can.
	KoalaToken string

	// Listen is the address of the API, host:port. Port 0 picks a free one.
	Listen string

	// Admin is the address of health, metrics, reload and profiles. Whoever
	// reaches it can reload the rules: keep it off public networks.
	Admin string

	// Watch reloads the rules when the file, or a list it reads, changes.
	Watch bool

	// WatchEvery is how often Watch looks at the files even when the system
	// tells of no change, as for files that another machine changes. 0: never.
	WatchEvery time.Duration

	// Store is the URL of the store that all instances share. Empty counts in
	// memory. StoreTimeout is the longest that a call to it waits; 0 means what
	// the URL says, or the store's default.
	Store        string
	StoreTimeout time.Duration

	// Nodes is how many instances share the store. While it is out of reach,
	// each may admit that part of a quota by itself.
	Nodes int

	// ReadyNeedsStore makes /readyz fail while the store is out of reach.
	// Without it the service stays ready, and rules follow their on_outage.
	ReadyNeedsStore bool

	// DrainDelay is how long the service goes on taking connections after it
	// was told to stop, with /readyz failing, so that load balancers notice.
	DrainDelay time.Duration

	// DrainTimeout is how long requests in flight get to finish after that.
	DrainTimeout time.Duration

	// LogFormat is "text" or "json", LogLevel "debug", "info", "warn" or
	// "error".
	LogFormat string
	LogLevel  string

	// Warnings are what the log says first about where the values came from.
	Warnings []string
}

// Default is a service on loopback that watches its rules.
func Default() Config {
	return Config{
		Listen:       "127.0.0.1:8080",
		Admin:        "127.0.0.1:8081",
		Watch:        true,
		Nodes:        1,
		DrainTimeout: 10 * time.Second,
		LogFormat:    "text",
		LogLevel:     "info",
	}
}

// KoalaAddr is where koala's calls are answered: at KoalaListen, or, with a rule
// file of koala's, at koala's port on the loopback. Empty: nowhere.
func (c *Config) KoalaAddr() string {
	if c.KoalaListen == "" && c.Koala != "" {
		return "127.0.0.1:9981"
	}
	return c.KoalaListen
}

// LogFormats are the ways to write a log that a Config takes.
func LogFormats() []string { return []string{"text", "json"} }

// LogLevels are the levels that a Config takes, from most to least talkative.
func LogLevels() []string { return []string{"debug", "info", "warn", "error"} }

// Validate returns every fault of c as a [fault.List]. Paths are the names of
// the fields as flags have them. Validate opens no file and no port.
func (c *Config) Validate() error {
	f := faults{}
	f.address("listen", c.Listen)
	f.address("admin", c.Admin)
	f.clash("admin", c.Admin, "listen", c.Listen)
	f.koala(c)
	f.store(c)
	f.notNegative("watch-every", c.WatchEvery)
	f.notNegative("drain-delay", c.DrainDelay)
	f.notNegative("drain-timeout", c.DrainTimeout)
	f.oneOf("log-format", c.LogFormat, LogFormats())
	f.oneOf("log-level", c.LogLevel, LogLevels())
	return f.Err()
}

// faults collects the faults of a Config.
type faults struct{ fault.List }

// address checks that addr is host:port.
func (f *faults) address(field, addr string) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		f.Addf(field, "%q: not host:port, such as 127.0.0.1:8080", addr)
		return
	}
	n, err := strconv.Atoi(port)
	switch {
	case err != nil:
		f.Addf(field, "%q: port is not a number", addr)
	case n < 0 || n > 65535:
		f.Addf(field, "%q: port out of range 0 to 65535", addr)
	}
}

// clash checks that two listeners do not share an address. The operating
// system would report that as a port that another process uses.
func (f *faults) clash(field, addr, other, taken string) {
	if addr == taken && !strings.HasSuffix(addr, ":0") {
		f.Addf(field, "%q: the same as %s; give it a port of its own", addr, other)
	}
}

// koala checks the fields about koala.
func (f *faults) koala(c *Config) {
	if c.Koala != "" && c.Rules != "" {
		f.Addf("koala", "not with rules: one file has all the rules; weir import koala makes koala's native ones")
	}
	if c.KoalaToken != "" && c.Koala == "" {
		f.Addf("koala-token", "only with koala: it is for rewriting that file")
	}
	if addr := c.KoalaAddr(); addr != "" {
		f.address("koala-listen", addr)
		f.clash("koala-listen", addr, "listen", c.Listen)
		f.clash("koala-listen", addr, "admin", c.Admin)
	}
}

// store checks the fields about the store. It reports the first fault only:
// the others often follow from it.
func (f *faults) store(c *Config) {
	switch {
	case c.Nodes < 1:
		f.Addf("nodes", "%d: want the number of instances, at least 1", c.Nodes)
	case c.StoreTimeout != 0 && c.StoreTimeout < time.Millisecond:
		f.Addf("store-timeout", "%v: want at least 1ms", c.StoreTimeout)
	case c.Store != "":
	case c.StoreTimeout != 0:
		f.Addf("store-timeout", "only with store")
	case c.Nodes > 1:
		f.Addf("nodes", "only with store: instances that count in memory know nothing of each other")
	case c.ReadyNeedsStore:
		f.Addf("ready-needs-store", "only with store")
	}
}

func (f *faults) notNegative(field string, d time.Duration) {
	if d < 0 {
		f.Addf(field, "%v: negative", d)
	}
}

func (f *faults) oneOf(field, value string, allowed []string) {
	if !slices.Contains(allowed, value) {
		f.Addf(field, "%q: not one of %s", value, strings.Join(allowed, ", "))
	}
}
