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

	// Listen is the address of the API, host:port. Port 0 picks a free one.
	Listen string

	// Admin is the address of health, metrics, reload and profiles. Whoever
	// reaches it can reload the rules: keep it off public networks.
	Admin string

	// Watch reloads the rules when the file, or a list it reads, changes.
	Watch bool

	// DrainDelay is how long the service goes on taking connections after it
	// was told to stop, with /readyz failing, so that load balancers notice.
	DrainDelay time.Duration

	// DrainTimeout is how long requests in flight get to finish after that.
	DrainTimeout time.Duration

	// LogFormat is "text" or "json", LogLevel "debug", "info", "warn" or
	// "error".
	LogFormat string
	LogLevel  string
}

// Default is a service on loopback that watches its rules.
func Default() Config {
	return Config{
		Listen:       "127.0.0.1:8080",
		Admin:        "127.0.0.1:8081",
		Watch:        true,
		DrainTimeout: 10 * time.Second,
		LogFormat:    "text",
		LogLevel:     "info",
	}
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
		clash(c.Listen, c.Admin),
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

// clash says when both listeners want one port, which the system would report
// as a stranger's.
func clash(listen, admin string) error {
	if listen != admin || strings.HasSuffix(listen, ":0") {
		return nil
	}
	return fmt.Errorf("admin: %q: the same as listen; give it a port of its own", admin)
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
