package access

import (
	"net/url"
	"strings"
)

// Redact returns a command line without secrets: the passwords of URLs.
func Redact(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		if flag, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(flag, "--") {
			out[i] = flag + "=" + redactURL(value)
		} else {
			out[i] = redactURL(arg)
		}
	}
	return out
}

// redactURL returns text without the passwords, if text is a URL with some: the one of its
// user, and those in options such as sentinel_password. A user of http or https without a
// password is left out, too, because it may be a token. A text with :// that is not a URL is
// not shown at all.
func redactURL(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return "…"
	}
	changed := false
	if _, has := u.User.Password(); has {
		u.User, changed = url.User(u.User.Username()), true
	} else if u.User != nil && strings.HasPrefix(u.Scheme, "http") {
		u.User, changed = nil, true
	}
	options, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "…"
	}
	for name := range options {
		if strings.Contains(name, "pass") && name != "password_file" {
			options.Del(name)
			u.RawQuery, changed = options.Encode(), true
		}
	}
	if !changed {
		return text
	}
	return u.String()
}
