package config_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/internal/config"
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
		Listen:       ":99999",
		Admin:        "localhost",
		DrainDelay:   -time.Second,
		DrainTimeout: -time.Minute,
		LogFormat:    "xml",
		LogLevel:     "loud",
	}
	const want = `listen: ":99999": port out of range 0 to 65535
admin: "localhost": not host:port, such as 127.0.0.1:8080
drain-delay: -1s: negative
drain-timeout: -1m0s: negative
log-format: "xml": not one of text, json
log-level: "loud": not one of debug, info, warn, error`
	if err := c.Validate(); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestValidateAddresses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ listen, admin, want string }{
		{":0", ":0", ""},
		{"[::1]:8080", "localhost:8081", ""},
		{":http", ":8081", `listen: ":http": port is not a number`},
		{":8080", ":8080", `admin: ":8080": the same as listen; give it a port of its own`},
	} {
		c := config.Default()
		c.Listen, c.Admin = tc.listen, tc.admin
		got := ""
		if err := c.Validate(); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s and %s: got %q, want %q", tc.listen, tc.admin, got, tc.want)
		}
	}
}
