package answer

import (
	"net/http"
	"strconv"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// RateLimit sets Retry-After, and the fields RateLimit-Policy and RateLimit of
// draft-ietf-httpapi-ratelimit-headers-10, for the limits that decided d: those
// before the first verdict, without rules in shadow mode.
func RateLimit(h http.Header, d *weir.Decision) {
	rules := d.Rules
	if d.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(wholeSeconds(d.RetryAfter), 10))
	}
	end := rules.Len()
	if len(d.Verdicts) > 0 {
		if at, ok := rules.Find(d.Verdicts[0]); ok {
			end = at
		}
	}
	var policy, left []byte
	for i := range d.Usages {
		u := &d.Usages[i]
		at, ok := rules.Find(u.Rule)
		if !ok || at > end || u.Kind != rule.KindLimit || u.Shadow {
			continue
		}
		policy = appendItem(policy, u.Rule)
		policy = appendParameter(policy, "q", u.Quota)
		if w := rules.Rule(at).Window; seconds(&w) > 0 {
			policy = appendParameter(policy, "w", seconds(&w))
		}
		left = appendItem(left, u.Rule)
		left = appendParameter(left, "r", u.Remaining)
		// t is the time until more is available. Only a denial has it.
		if u.RetryAfter > 0 {
			left = appendParameter(left, "t", wholeSeconds(u.RetryAfter))
		}
	}
	if policy != nil {
		h.Set("RateLimit-Policy", string(policy))
		h.Set("RateLimit", string(left))
	}
}

// wholeSeconds returns d in seconds, rounded up so that a client does not return
// too early.
func wholeSeconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

// seconds returns the length of w. It returns 0 for a month and a year, whose
// length varies, and for a bucket, whose quota is a burst and not a rate.
func seconds(w *window.Window) int64 {
	if w.Kind == window.KindBucket {
		return 0
	}
	if w.Kind != window.KindCalendar {
		return wholeSeconds(w.Length)
	}
	switch w.Period {
	case window.Minute:
		return 60
	case window.Hour:
		return 3600
	case window.Day:
		return 24 * 3600
	case window.Week:
		return 7 * 24 * 3600
	}
	return 0
}

// appendItem appends a String of RFC 9651 as the next item of a list. Names of
// rules contain no character that needs an escape.
func appendItem(b []byte, name string) []byte {
	if b != nil {
		b = append(b, ", "...)
	}
	return append(append(append(b, '"'), name...), '"')
}

// appendParameter appends a parameter that is an Integer of RFC 9651. Such an
// Integer has 15 digits at most; larger numbers are cut to that.
func appendParameter(b []byte, name string, n int64) []byte {
	const most = 999_999_999_999_999
	b = append(append(append(b, ';'), name...), '=')
	return strconv.AppendInt(b, min(n, most), 10)
}
