package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/fault"
)

func TestDefaultIsValid(t *testing.T) {
	t.Parallel()
	c := config.Default()
	if err := c.Validate(); err != nil {
		t.Errorf("got %v, want no fault", err)
	}
}

func TestValidateJoinsEveryFault(t *testing.T) {
	t.Parallel()
	c := config.Config{
		Nodes:        -2,
		Listen:       ":99999",
		Admin:        "localhost",
		Rules:        "rules.yaml",
		Koala:        "koala_rule.conf",
		KoalaListen:  "localhost:http",
		Headers:      "draft-99",
		Page:         "perhaps",
		PageWrite:    true,
		WatchEvery:   -1,
		DrainDelay:   -time.Second,
		DrainTimeout: -time.Minute,
		NearLimit:    1.5,
		LogFormat:    "xml",
		LogLevel:     "loud",

		HeadersJitter: 1.5,
	}
	const want = `listen: ":99999": port out of range 0 to 65535
admin: "localhost": not host:port, such as 127.0.0.1:8080
koala-listen: "localhost:http": port is not a number
koala: not with rules: all rules come from one file; weir import koala converts koala's
page: "perhaps": not one of on, off
page-write: needs tokens, because callers must show who they are: --tokens FILE or WEIR_TOKEN
headers: "draft-99": not one of draft, draft-03, legacy, legacy-epoch, retry-after, none
headers-jitter: 1.5: want a part from 0 to 1, such as 0.1
nodes: -2: want the number of instances, at least 1
watch-every: -1ns: negative
near-limit: 1.5: want a share above 0 and below 1, such as 0.8
metric-namespaces: 0: out of range 1 to 10000
drain-delay: -1s: negative
drain-timeout: -1m0s: negative
log-format: "xml": not one of text, json
log-level: "loud": not one of debug, info, warn, error`
	if got := summaries(c.Validate()); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// summaries returns the faults in err, one a line.
func summaries(err error) string {
	var lines []string
	for _, f := range fault.Of(err) {
		lines = append(lines, f.Summary())
	}
	return strings.Join(lines, "\n")
}

func TestValidateStore(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*config.Config){
		"": func(c *config.Config) {
			c.Store, c.StoreTimeout, c.Nodes, c.ReadyNeedsStore = "redis://localhost", time.Second, 3, true
		},
		"store-timeout: 10ns: want at least 1ms": func(c *config.Config) { c.Store, c.StoreTimeout = "redis://localhost", 10 },
		"store-timeout: only with store":         func(c *config.Config) { c.StoreTimeout = time.Second },
		"ready-needs-store: only with store":     func(c *config.Config) { c.ReadyNeedsStore = true },
		"nodes: only with store: instances that count in memory do not share quotas": func(c *config.Config) {
			c.Nodes = 2
		},
	} {
		c := config.Default()
		change(&c)
		got := summaries(c.Validate())
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestValidateAddresses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ listen, admin, want string }{
		{"127.0.0.1:0", "[::1]:0", ""},
		{"[::1]:8080", "localhost:8081", ""},
		{":http", "127.0.0.1:8081", `listen: ":http": port is not a number`},
		{"localhost:8080", "localhost:8080", `admin: "localhost:8080": the same as listen; give it its own port`},
	} {
		c := config.Default()
		c.Listen, c.Admin = tc.listen, tc.admin
		got := summaries(c.Validate())
		if got != tc.want {
			t.Errorf("%s and %s: got %q, want %q", tc.listen, tc.admin, got, tc.want)
		}
	}
}

func TestValidateKoala(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		change     func(*config.Config)
		addr, want string
	}{
		{func(*config.Config) {}, "", ""},
		{func(c *config.Config) { c.Koala = "koala_rule.conf" }, "127.0.0.1:9981", ""},
		{func(c *config.Config) { c.Koala, c.KoalaListen = "koala_rule.conf", "[::1]:9982" }, "[::1]:9982", ""},
		{func(c *config.Config) { c.Rules, c.KoalaListen = "rules.yaml", "localhost:9981" }, "localhost:9981", ""},
		{func(c *config.Config) { c.KoalaListen = "127.0.0.1:8080" }, "127.0.0.1:8080",
			`koala-listen: "127.0.0.1:8080": the same as listen; give it its own port`},
	} {
		c := config.Default()
		tc.change(&c)
		got := summaries(c.Validate())
		if got != tc.want || c.KoalaAddr() != tc.addr {
			t.Errorf("got %q at %q, want %q at %q", got, c.KoalaAddr(), tc.want, tc.addr)
		}
	}
}
