// Package config is what the service can be told: its defaults, and the
// checks that find every fault at once. Where the values come from, flags or a
// file, is the caller's business.
package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
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

// Validate joins every fault of c, each with the name of its field. It opens
// nothing: a rules file that is missing is found when it is read.
func (c *Config) Validate() error {
	return errors.Join(
		address("listen", c.Listen),
		address("admin", c.Admin),
		clash("admin", c.Admin, "listen", c.Listen),
		koalaFlags(c),
		storeFlags(c),
		notNegative("watch-every", c.WatchEvery),
		notNegative("drain-delay", c.DrainDelay),
		notNegative("drain-timeout", c.DrainTimeout),
		oneOf("log-format", c.LogFormat, LogFormats()),
		oneOf("log-level", c.LogLevel, LogLevels()),
	)
}

func address(field, addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%s: %q: not host:port, such as 127.0.0.1:8080", field, addr)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return fmt.Errorf("%s: %q: port is not a number", field, addr)
	}
	if n < 0 || n > 65535 {
		return fmt.Errorf("%s: %q: port out of range 0 to 65535", field, addr)
	}
	return nil
}

// clash says when two listeners want one port, which the system would report
// as a stranger's.
func clash(field, addr, other, taken string) error {
	if addr != taken || strings.HasSuffix(addr, ":0") {
		return nil
	}
	return fmt.Errorf("%s: %q: the same as %s; give it a port of its own", field, addr, other)
}

func koalaFlags(c *Config) error {
	var faults []error
	if c.Koala != "" && c.Rules != "" {
		faults = append(faults, errors.New("koala: not with rules: one file has all the rules; weir import koala makes koala's native ones"))
	}
	if c.KoalaToken != "" && c.Koala == "" {
		faults = append(faults, errors.New("koala-token: only with koala: it is for rewriting that file"))
	}
	if addr := c.KoalaAddr(); addr != "" {
		faults = append(faults,
			address("koala-listen", addr),
			clash("koala-listen", addr, "listen", c.Listen),
			clash("koala-listen", addr, "admin", c.Admin))
	}
	return errors.Join(faults...)
}

func storeFlags(c *Config) error {
	switch {
	case c.Nodes < 1:
		return fmt.Errorf("nodes: %d: want the number of instances, at least 1", c.Nodes)
	case c.StoreTimeout != 0 && c.StoreTimeout < time.Millisecond:
		return fmt.Errorf("store-timeout: %v: want at least 1ms", c.StoreTimeout)
	case c.Store != "":
		return nil
	case c.StoreTimeout != 0:
		return errors.New("store-timeout: only with store")
	case c.Nodes > 1:
		return errors.New("nodes: only with store: instances that count in memory know nothing of each other")
	case c.ReadyNeedsStore:
		return errors.New("ready-needs-store: only with store")
	}
	return nil
}

func notNegative(field string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s: %v: negative", field, d)
	}
	return nil
}

func oneOf(field, value string, allowed []string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s: %q: not one of %s", field, value, strings.Join(allowed, ", "))
}
