package redact_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/redact"
)

func TestText(t *testing.T) {
	t.Parallel()
	const key = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgq9V7C/hj6ygxOU65"
	hash := strings.Repeat("0a", 32)
	stars := func(n int) string { return strings.Repeat("*", n) }
	for text, want := range map[string]string{
		"": "",
		"token weir_ABCDEFGHIJKLMNOPQRSTUVWXYZ, and more":                         "token " + stars(31) + ", and more",
		"weir_decisions_total weir_abcdefghijklmnopqrstuvwxyz":                    "weir_decisions_total weir_abcdefghijklmnopqrstuvwxyz",
		"shop sha256:" + hash + " scopes=read":                                    "shop sha256:" + stars(64) + " scopes=read",
		"all the same " + strings.Repeat("e", 64) + " " + strings.Repeat("0", 64): "all the same " + strings.Repeat("e", 64) + " " + strings.Repeat("0", 64),
		"the commit " + hash[:40]:                                                 "the commit " + hash[:40],
		"é " + key + "\n" + key:                                                   "é " + stars(64) + "\n" + stars(64),
		"/api/v1/Users/settings/of/the/Organisation":                              "/api/v1/Users/settings/of/the/Organisation",
		"redis://weir:p%zz/x@y@host:1/0 and http://host/@":                        "redis://" + stars(13) + "@host:1/0 and http://*****@",
		`parse "http://user@host": ann@example.org`:                               `parse "http://user@host": ann@example.org`,
		"redis://:secret@host, https://0123456789abcdef0123456789@host":           "redis://*******@host, https://**************************@host",
		"https://host/path":                                                       "https://host/path",
		"redis://é@host":                                                          "redis://**@host",
	} {
		if got := redact.Text(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Lengths stay, and what has been redacted stays as it is.
func FuzzText(f *testing.F) {
	f.Add("weir_ABCDEFGHIJKLMNOPQRSTUVWXYZ redis://é@x")
	f.Fuzz(func(t *testing.T, text string) {
		got := redact.Text(text)
		if len(got) != len(text) || redact.Text(got) != got {
			t.Errorf("got %q, and then %q", got, redact.Text(got))
		}
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"EOF":                                 `EOF`,
		`host:1: key "weir:{ann}:posts": EOF`: `host:1: key "***": EOF`,
		`key "w:{a\"b\\}" and 3 more: WRONGTYPE; key "w:{c}" too`: `key "***" and 3 more: WRONGTYPE; key "***" too`,
		`rules.yaml:1:3: unknown key "limt"; key "w:{c}`:          `rules.yaml:1:3: unknown key "limt"; key "***`,
		`key "never ends\`: `key "never ends\`,
	} {
		if got := redact.Keys(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
