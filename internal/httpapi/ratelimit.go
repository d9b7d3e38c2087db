package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// rateLimitHeaders sets Retry-After, and the fields RateLimit-Policy and
// RateLimit of draft-ietf-httpapi-ratelimit-headers-10, for the limits of d
// that decide: those before a verdict, without the ones that only watch.
func rateLimitHeaders(h http.Header, d *weir.Decision) {
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
		// t is the time until there is more, which only a denial knows.
		if u.RetryAfter > 0 {
			left = appendParameter(left, "t", wholeSeconds(u.RetryAfter))
		}
	}
	if policy != nil {
		h.Set("RateLimit-Policy", string(policy))
		h.Set("RateLimit", string(left))
	}
}

// wholeSeconds is d in seconds, rounded up so that nobody comes back early.
func wholeSeconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

// seconds is how long w is; 0 for a month or a year, which have no one length,
// and for a bucket, whose burst says nothing about its rate.
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

// appendItem appends a String of RFC 9651 as the next item of a list. Rules'
// names have nothing that one would have to escape.
func appendItem(b []byte, name string) []byte {
	if b != nil {
		b = append(b, ", "...)
	}
	return append(append(append(b, '"'), name...), '"')
}

// appendParameter appends an Integer of RFC 9651, which has 15 digits at most.
func appendParameter(b []byte, name string, n int64) []byte {
	const most = 999_999_999_999_999
	b = append(append(append(b, ';'), name...), '=')
	return strconv.AppendInt(b, min(n, most), 10)
}
