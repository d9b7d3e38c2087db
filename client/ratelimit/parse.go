package ratelimit

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Parse returns what the header of an answer states about limits, in any of the
// dialects, and in those of the drafts between them:
//
//   - RateLimit and RateLimit-Policy, as Lists (draft-08 and later) and as
//     limit=…, remaining=…, reset=… (draft-07);
//   - RateLimit-Limit, -Remaining and -Reset (draft-03 to draft-06);
//   - X-RateLimit-Limit, -Remaining and -Reset, and X-Rate-Limit-…, where Reset is
//     in seconds from now, or a Unix time in seconds or milliseconds;
//   - Retry-After, in seconds or as a date.
//
// If an answer has several forms, the first in this list counts. Retry-After always counts. Quota
// and Remaining of a policy are -1 if the server does not state them. Fields that are malformed or
// longer than 8 KiB are ignored. Dates are relative to the header's Date, the server's clock, or to
// now if there is none. A date in the past means no wait.
func Parse(h http.Header, now time.Time) headers.Limits {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	l := headers.Limits{RetryAfter: headers.ParseRetryAfter(h, now), Degraded: store.Reason(h.Get("Weir-Degraded"))}
	for _, parse := range []func(http.Header) []headers.Policy{parseLists, parseDraft07} {
		if l.Policies = parse(h); l.Policies != nil {
			return l
		}
	}
	for _, prefix := range []string{"Ratelimit-", "X-Ratelimit-", "X-Rate-Limit-"} {
		if l.Policies = parseTriple(h, prefix, now); l.Policies != nil {
			return l
		}
	}
	return l
}

// maxWait bounds the waits that are read, so that no sum of them overflows.
const maxWait = window.MaxLength

// seconds returns n seconds, within 0 and maxWait.
func seconds(n int64) time.Duration {
	return time.Duration(max(0, min(n, int64(maxWait/time.Second)))) * time.Second
}

// Names of fields in their canonical form.
const (
	nameRateLimit  = "Ratelimit"
	nameRatePolicy = "Ratelimit-Policy"
)

// parseLists reads RateLimit and RateLimit-Policy as Lists.
func parseLists(h http.Header) []headers.Policy {
	var policies []headers.Policy
	for _, item := range parseList(h[nameRatePolicy]) {
		name, named := text(item.Value)
		if q, ok := integer(item, "q"); ok && named && q >= 0 {
			w, _ := integer(item, "w")
			policies = append(policies, headers.Policy{Name: name, Unit: word(item, "qu"), Quota: q, Remaining: -1, Window: seconds(w)})
		}
	}
	for _, item := range parseList(h[nameRateLimit]) {
		name, named := text(item.Value)
		r, ok := integer(item, "r")
		if !ok || !named || r < 0 {
			continue
		}
		p := find(&policies, name)
		p.Remaining = r
		if t, ok := integer(item, "t"); ok {
			p.RetryAfter = seconds(t)
		}
	}
	return policies
}

// find returns the first policy called name. It adds one if there is none.
func find(policies *[]headers.Policy, name string) *headers.Policy {
	for i := range *policies {
		if p := &(*policies)[i]; p.Name == name && p.Remaining < 0 {
			return p
		}
	}
	*policies = append(*policies, headers.Policy{Name: name, Quota: -1, Remaining: -1})
	return &(*policies)[len(*policies)-1]
}

// parseDraft07 reads RateLimit in the form of draft-07, a Dictionary.
func parseDraft07(h http.Header) []headers.Policy {
	numbers := parseDictionary(h[nameRateLimit])
	p := headers.Policy{Quota: -1, Remaining: -1, ResetAfter: seconds(numbers["reset"])}
	if n, ok := numbers["limit"]; ok {
		p.Quota = max(n, -1)
	}
	if n, ok := numbers["remaining"]; ok {
		p.Remaining = max(n, -1)
	}
	if p.Quota < 0 && p.Remaining < 0 {
		return nil
	}
	for _, item := range parseList(h[nameRatePolicy]) {
		if w, ok := integer(item, "w"); ok && p.Quota >= 0 && item.Value == p.Quota {
			p.Window = seconds(w)
		}
	}
	return []headers.Policy{p}
}

// parseTriple reads the three fields with a prefix. The first number of Limit is the
// limit that Remaining and Reset are about; policies may follow it.
func parseTriple(h http.Header, prefix string, now time.Time) []headers.Policy {
	p := headers.Policy{Quota: -1, Remaining: -1}
	var policies []headers.Policy
	for _, item := range parseList(h[prefix+"Limit"]) {
		quota, ok := item.Value.(int64)
		if !ok || quota < 0 {
			continue
		}
		w, windowed := integer(item, "w")
		if p.Quota < 0 {
			p.Quota = quota
			p.Window, p.Name = seconds(w), word(item, "name")
			continue
		}
		if windowed && p.Window == 0 && quota == p.Quota && p.Name == "" {
			p.Window, p.Name = seconds(w), word(item, "name") // the policy of the limit
			continue
		}
		policies = append(policies, headers.Policy{Name: word(item, "name"), Quota: quota, Remaining: -1, Window: seconds(w)})
	}
	if n, ok := number(h.Get(prefix+"Remaining"), math.Floor); ok {
		p.Remaining = n
	}
	if n, ok := number(h.Get(prefix+"Reset"), math.Ceil); ok {
		p.ResetAfter = resetAfter(n, now)
	}
	if p.Quota < 0 && p.Remaining < 0 {
		return nil
	}
	return append([]headers.Policy{p}, policies...)
}

// number reads a number that is not negative. Some servers write a fraction, which
// round makes whole.
func number(text string, round func(float64) float64) (int64, bool) {
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, n >= 0
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0 && f < 1<<53) {
		return 0, false
	}
	return int64(round(f)), true
}

// resetAfter returns the time until a reset. Numbers from 1e8 are Unix times, in
// seconds or, from 1e11, in milliseconds: 1e8 seconds are more than three years.
func resetAfter(n int64, now time.Time) time.Duration {
	switch {
	case n < 1e8:
		return seconds(n)
	case n < 1e11:
		return max(0, min(time.Unix(n, 0).Sub(now), maxWait))
	default:
		return max(0, min(time.UnixMilli(min(n, 1e15)).Sub(now), maxWait))
	}
}
