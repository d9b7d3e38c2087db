package config

import (
	"strconv"
	"time"
)

// Envoy is the part of the configuration for Envoy's rate limit protocol.
type Envoy struct {
	// Dir is a directory with rule files of envoyproxy/ratelimit, which replaces
	// Rules. With neither Dir nor XDS, weir's own rules answer Envoy's calls, and no
	// field but Headers has an effect.
	Dir string

	// XDS is the management server that sends the rules, instead of Dir. Nil: none does.
	XDS *XDS

	// Headers adds header fields about limits to answers: those of
	// [Config.Headers] or, with Dir, the three whose names are Limit, Remaining
	// and Reset.
	Headers                 bool
	Limit, Remaining, Reset string

	// RequestHeaders adds such fields to the request that Envoy passes on.
	RequestHeaders                               bool
	RequestLimit, RequestRemaining, RequestReset string

	// MergeDomains adds up files with the same domain. Shadow makes every call OK.
	// Quota makes every limit one with quota_mode. Together counts a call under
	// all its limits or under none. Metadata adds the call and the metadata of its
	// limits to answers. CalendarMonths makes a month one of the calendar, instead of
	// 30 days.
	MergeDomains, Shadow, Quota, Together, Metadata, CalendarMonths bool

	// Metrics adds the metrics of envoyproxy/ratelimit. NearLimit is the part of a
	// limit from which they count a call as near it. NoDots has them write _ for the dots in
	// keys and values.
	Metrics   bool
	NearLimit float64
	NoDots    bool
}

// XDS is a management server of xDS, and how the service presents itself to it.
type XDS struct {
	Server   string            // host:port
	Node     string            // the identity of the service, by which the server chooses the rules
	Metadata map[string]string // of the node
	Headers  map[string]string // of the stream

	// TLS secures the connection. Cert and Key are the files of the service's own
	// certificate, CA of the server's authorities; empty: no certificate, and those of the system.
	// ServerName is the name in the server's certificate; empty: that of Server.
	TLS                       bool
	Cert, Key, CA, ServerName string

	// RetryAfter is the delay before the first attempt after a stream has failed. It
	// grows up to MaxRetryAfter, and varies by the part RetryJitter.
	RetryAfter, MaxRetryAfter time.Duration
	RetryJitter               float64

	MaxMessage int // in bytes

	// ReadyWithout reports that the service is ready before it has received rules.
	ReadyWithout bool
}

// Replaces reports whether envoyproxy/ratelimit is replaced: its rules decide.
func (e *Envoy) Replaces() bool { return e.Dir != "" || e.XDS != nil }

// defaultEnvoy returns the defaults of envoyproxy/ratelimit.
func defaultEnvoy() Envoy {
	const limit, remaining, reset = "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"
	return Envoy{
		Limit: limit, Remaining: remaining, Reset: reset, RequestLimit: limit, RequestRemaining: remaining, RequestReset: reset, NearLimit: 0.8,
	}
}

// envoy checks the fields about Envoy.
func (f *faults) envoy(c *Config) {
	e := &c.Envoy
	if !e.Replaces() {
		return
	}
	switch {
	case e.XDS != nil && e.Dir != "":
		f.Addf("envoy-config", "not with rules by xDS: all rules come from one place")
	case c.Rules != "":
		f.Addf("envoy-config", "not with rules: all rules come from one place; weir import envoy converts the files")
	case c.Koala != "":
		f.Addf("envoy-config", "not with koala: all rules come from one place")
	}
	if e.NearLimit < 0 || e.NearLimit > 1 {
		f.Addf("NEAR_LIMIT_RATIO", "%s: want a part from 0 to 1, such as 0.8", strconv.FormatFloat(e.NearLimit, 'g', -1, 64))
	}
	for _, h := range [][2]string{
		{"LIMIT_LIMIT_HEADER", e.Limit}, {"LIMIT_REMAINING_HEADER", e.Remaining}, {"LIMIT_RESET_HEADER", e.Reset},
		{"LIMIT_REQUEST_LIMIT_HEADER", e.RequestLimit}, {"LIMIT_REQUEST_REMAINING_HEADER", e.RequestRemaining}, {"LIMIT_REQUEST_RESET_HEADER", e.RequestReset},
	} {
		if !isToken(h[1]) {
			f.Addf(h[0], "%q: not the name of a header field", h[1])
		}
	}
}

// isToken reports whether text can be the name of a header field.
func isToken(text string) bool {
	for i := range len(text) {
		c := text[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return text != ""
}
