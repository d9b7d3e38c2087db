package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/fault"
)

func TestParseAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		address config.Address
		local   bool
	}{
		"127.0.0.1:8080":          {config.Address{Scheme: "http", Host: "127.0.0.1:8080"}, true},
		"127.9.9.9:80":            {config.Address{Scheme: "http", Host: "127.9.9.9:80"}, true},
		"[::1]:8080":              {config.Address{Scheme: "http", Host: "[::1]:8080"}, true},
		"[::ffff:127.0.0.1]:8080": {config.Address{Scheme: "http", Host: "[::ffff:127.0.0.1]:8080"}, true},
		"LocalHost:8080":          {config.Address{Scheme: "http", Host: "LocalHost:8080"}, true},
		"unix:/run/weir.sock":     {config.Address{Scheme: "unix", Host: "/run/weir.sock"}, true},
		"unix:///run/weir.sock":   {config.Address{Scheme: "unix", Host: "/run/weir.sock"}, true},
		":8080":                   {config.Address{Scheme: "http", Host: ":8080"}, false},
		"0.0.0.0:8080":            {config.Address{Scheme: "http", Host: "0.0.0.0:8080"}, false},
		"[::]:8080":               {config.Address{Scheme: "http", Host: "[::]:8080"}, false},
		"192.0.2.1:8080":          {config.Address{Scheme: "http", Host: "192.0.2.1:8080"}, false},
		"127.0.0.1.example:8080":  {config.Address{Scheme: "http", Host: "127.0.0.1.example:8080"}, false},
		"localhost.example:8080":  {config.Address{Scheme: "http", Host: "localhost.example:8080"}, false},
		"https://:8443":           {config.Address{Scheme: "https", Host: ":8443"}, false},
		"h2c://127.0.0.1:8080/":   {config.Address{Scheme: "h2c", Host: "127.0.0.1:8080"}, true},
	} {
		got, err := config.ParseAddress(text)
		if err != nil || got != want.address || got.Local() != want.local {
			t.Errorf("%s: got %v, local %v, %v; want %v", text, got, got.Local(), err, want)
		}
	}
}

// A listener that other machines can reach has authentication, or a permission.
func TestExposed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		change func(*config.Config)
		want   string // the listeners that are exposed
	}{
		{func(*config.Config) {}, ""},
		{func(c *config.Config) { c.Listen = ":8080" }, "listen"},
		{func(c *config.Config) { c.Listen, c.Admin, c.KoalaListen = ":1", ":2", ":3" }, "listen admin koala-listen"},
		{func(c *config.Config) { c.Listen, c.Access.Tokens = ":8080", "tokens" }, ""},
		{func(c *config.Config) { c.Listen, c.Access.Token = ":8080", "weir_secretsecretsecret" }, ""},
		{func(c *config.Config) { c.Listen, c.Access.Insecure = ":8080", []string{"http"} }, ""},
		{func(c *config.Config) { c.Listen, c.Access.Insecure = ":8080", []string{"admin", "koala"} }, "listen"},
		{func(c *config.Config) { c.Listen, c.Admin, c.Access.Insecure = ":8080", ":8081", []string{"all"} }, ""},
		{func(c *config.Config) { c.Listen = "https://:8080" }, "listen"}, // TLS does not authenticate
		{func(c *config.Config) { c.Listen, c.Access.TLSClientCA = "https://:8080", "ca.pem" }, ""},
		{func(c *config.Config) { c.Listen, c.Admin, c.Access.TLSClientCA = "https://:8080", ":8081", "ca.pem" }, "admin"},
		{func(c *config.Config) { c.Listen = "unix:/run/weir.sock" }, ""},
	} {
		c := config.Default()
		tc.change(&c)
		var paths []string
		for _, f := range fault.Of(c.Exposed()) {
			paths = append(paths, f.Path)
		}
		if got := strings.Join(paths, " "); got != tc.want {
			t.Errorf("%s, %s, %s: got %q exposed, want %q", c.Listen, c.Admin, c.KoalaListen, got, tc.want)
		}
		if err := c.Validate(); tc.want != "" && !errors.As(err, new(*fault.Fault)) {
			t.Errorf("got %v from Validate, want the same faults", err)
		}
	}
}
