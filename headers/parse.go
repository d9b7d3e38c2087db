package headers

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

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
// Of several forms in one answer the first in this list counts. Retry-After always
// counts. Fields that are malformed are ignored. Dates count from the header's Date,
// the server's clock, or from now if it has none. Dates in the past are no wait.
func Parse(h http.Header, now time.Time) Limits {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	l := Limits{RetryAfter: parseRetryAfter(h.Get(nameRetryAfter), now), Degraded: store.Reason(h.Get(nameDegraded))}
	for _, parse := range []func(http.Header) []Policy{parseLists, parseDictionary} {
		if l.Policies = parse(h); l.Policies != nil {
			return l
		}
	}
	for _, prefix := range []string{prefixDraft03, prefixLegacy, "X-Rate-Limit-"} {
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

// parseRetryAfter reads Retry-After.
func parseRetryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return seconds(n)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, min(at.Sub(now), maxWait))
	}
	return 0
}

// parseLists reads RateLimit and RateLimit-Policy as Lists.
func parseLists(h http.Header) []Policy {
	left, _ := parseMembers(h[nameRateLimit], false)
	quotas, _ := parseMembers(h[nameRatePolicy], false)
	var policies []Policy
	for i := range quotas {
		m := &quotas[i]
		if q, ok := m.integer("q"); ok && m.isText && q >= 0 {
			w, _ := m.integer("w")
			policies = append(policies, Policy{Name: m.text, Unit: m.word("qu"), Quota: q, Remaining: -1, Window: seconds(w)})
		}
	}
	for i := range left {
		m := &left[i]
		r, ok := m.integer("r")
		if !ok || !m.isText || r < 0 {
			continue
		}
		p := find(&policies, m.text)
		p.Remaining = r
		if t, ok := m.integer("t"); ok {
			p.RetryAfter = seconds(t)
		}
	}
	return policies
}

// find returns the first policy called name. It adds one if there is none.
func find(policies *[]Policy, name string) *Policy {
	for i := range *policies {
		if p := &(*policies)[i]; p.Name == name && p.Remaining < 0 {
			return p
		}
	}
	*policies = append(*policies, Policy{Name: name, Quota: -1, Remaining: -1})
	return &(*policies)[len(*policies)-1]
}

// parseDictionary reads RateLimit as draft-07 has it.
func parseDictionary(h http.Header) []Policy {
	members, _ := parseMembers(h[nameRateLimit], true)
	p := Policy{Quota: -1, Remaining: -1}
	for i := range members {
		m := &members[i]
		if !m.isInt {
			continue
		}
		switch m.key {
		case "limit":
			p.Quota = max(m.n, -1)
		case "remaining":
			p.Remaining = max(m.n, -1)
		case "reset":
			p.ResetAfter = seconds(m.n)
		}
	}
	if p.Quota < 0 && p.Remaining < 0 {
		return nil
	}
	if quotas, _ := parseMembers(h[nameRatePolicy], false); p.Quota >= 0 {
		for i := range quotas {
			if w, ok := quotas[i].integer("w"); ok && quotas[i].isInt && quotas[i].n == p.Quota {
				p.Window = seconds(w)
			}
		}
	}
	return []Policy{p}
}

// parseTriple reads the three fields with a prefix. The first number of Limit is the
// limit that Remaining and Reset are about; policies may follow it.
func parseTriple(h http.Header, prefix string, now time.Time) []Policy {
	p := Policy{Quota: -1, Remaining: -1}
	members, _ := parseMembers(h[prefix+suffixLimit], false)
	var policies []Policy
	for i := range members {
		m := &members[i]
		if !m.isInt || m.n < 0 {
			continue
		}
		w, windowed := m.integer("w")
		if p.Quota < 0 {
			p.Quota = m.n
			p.Window, p.Name = seconds(w), m.word("name")
			continue
		}
		if windowed && p.Window == 0 && m.n == p.Quota && p.Name == "" {
			p.Window, p.Name = seconds(w), m.word("name") // the policy of the limit
			continue
		}
		policies = append(policies, Policy{Name: m.word("name"), Quota: m.n, Remaining: -1, Window: seconds(w)})
	}
	if n, ok := number(h.Get(prefix+suffixRemaining), math.Floor); ok {
		p.Remaining = n
	}
	if n, ok := number(h.Get(prefix+suffixReset), math.Ceil); ok {
		p.ResetAfter = resetAfter(n, now)
	}
	if p.Quota < 0 && p.Remaining < 0 {
		return nil
	}
	return append([]Policy{p}, policies...)
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
