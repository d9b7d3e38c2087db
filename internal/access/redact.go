package access

import (
	"net/url"
	"strings"
)

// secretFlags are the flags whose values are secrets.
var secretFlags = map[string]bool{"--koala-token": true}

// Redact returns a command line with dots in place of secrets: the values of
// flags that hold one, and the passwords of URLs.
func Redact(args []string) []string {
	out := make([]string, len(args))
	secret := false
	for i, arg := range args {
		flag, value, ok := strings.Cut(arg, "=")
		switch {
		case secret:
			out[i] = "…"
		case ok && secretFlags[flag]:
			out[i] = flag + "=…"
		case ok && strings.HasPrefix(flag, "--"):
			out[i] = flag + "=" + redactURL(value)
		default:
			out[i] = redactURL(arg)
		}
		secret = !secret && secretFlags[arg]
	}
	return out
}

// redactURL returns text without the password, if text is a URL with one. A text
// with :// that is no URL is not shown at all.
func redactURL(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return "…"
	}
	if _, has := u.User.Password(); !has {
		return text
	}
	u.User = url.User(u.User.Username())
	return u.String()
}
