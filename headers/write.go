package headers

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Format writes [Limits] as header fields. The zero value writes the dialect
// [Draft] without jitter. A Format is safe for concurrent use.
type Format struct {
	Dialect Dialect

	// Jitter spreads the clients that wait for the same instant: waits of denied
	// requests become longer by a random part, from 0 up to this fraction. 0.1 means
	// up to a tenth. 0 means no jitter. Waits never become shorter.
	Jitter float64
}

// Dialect is a way to write limits as header fields. The zero value is [Draft]. A dialect
// that is not in the list writes no fields.
type Dialect string

const (
	Draft       Dialect = "draft"        // RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers-10
	Draft03     Dialect = "draft-03"     // RateLimit-Limit, -Remaining and -Reset of the third draft
	Legacy      Dialect = "legacy"       // X-RateLimit-Limit, -Remaining and -Reset in seconds from now
	LegacyEpoch Dialect = "legacy-epoch" // as Legacy, with X-RateLimit-Reset as a Unix time in seconds
	RetryAfter  Dialect = "retry-after"  // only Retry-After
	None        Dialect = "none"         // no header fields
)

// Dialects returns the names of all dialects, in the order of the constants.
func Dialects() []string {
	return []string{string(Draft), string(Draft03), string(Legacy), string(LegacyEpoch), string(RetryAfter), string(None)}
}

// Names of header fields in their canonical form, so that no lookup has to
// convert them.
const (
	nameRetryAfter = "Retry-After"
	nameDegraded   = "Weir-Degraded"
	nameRateLimit  = "Ratelimit"
	nameRatePolicy = "Ratelimit-Policy"
)

// The names of the three fields of a dialect: limit, remaining and reset.
var (
	namesDraft03 = [...]string{"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset"}
	namesLegacy  = [...]string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}
)

// Set writes l into h. The policies come tightest first: those that deny before
// those that admit, of those that deny the one with the longest wait first, and of
// those that admit the one with the fewest hits left. Set sorts l.Policies in this
// way. Dialects with one policy write the tightest. Waits are rounded
// up to seconds.
func (f Format) Set(h http.Header, l *Limits) {
	switch f.Dialect {
	case "":
		f.Dialect = Draft
	case Draft, Draft03, Legacy, LegacyEpoch, RetryAfter:
	default:
		return
	}
	if l.Degraded != "" {
		h[nameDegraded] = []string{string(l.Degraded)}
	}
	stretch := 0.0
	if f.Jitter > 0 {
		stretch = f.Jitter * rand.Float64() // nothing secret depends on it
	}
	if l.RetryAfter > 0 {
		h[nameRetryAfter] = number(wholeSeconds(stretched(l.RetryAfter, stretch)))
	}
	if len(l.Policies) == 0 {
		return
	}
	tightest(l.Policies)
	switch f.Dialect {
	case Draft:
		draft(h, l.Policies, stretch)
	case Draft03:
		triple(h, &namesDraft03, l.Policies, stretch, time.Time{})
	case Legacy:
		triple(h, &namesLegacy, l.Policies, stretch, time.Time{})
	case LegacyEpoch:
		triple(h, &namesLegacy, l.Policies, stretch, time.Now())
	}
}

// number returns n as the value of a field.
func number(n int64) []string { return []string{strconv.FormatInt(n, 10)} }

// stretched returns d, longer by a part of it.
func stretched(d time.Duration, part float64) time.Duration {
	if part == 0 {
		return d
	}
	return d + time.Duration(float64(d)*part)
}

// wholeSeconds returns d in seconds, rounded up so that a client does not return
// too early.
func wholeSeconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

// draft sets RateLimit-Policy and RateLimit, which are Lists of RFC 9651.
func draft(h http.Header, policies []Policy, stretch float64) {
	var policy, limit []byte
	for i := range policies {
		p := &policies[i]
		policy = appendParameter(appendItem(policy, p.Name), "q", p.Quota)
		if p.Window > 0 {
			policy = appendParameter(policy, "w", wholeSeconds(p.Window))
		}
		if p.Unit != "" {
			policy = appendString(append(policy, ";qu="...), p.Unit)
		}
		limit = appendParameter(appendItem(limit, p.Name), "r", p.Remaining)
		// t is the time until more is available. Only a denial has it.
		if p.RetryAfter > 0 {
			limit = appendParameter(limit, "t", wholeSeconds(stretched(p.RetryAfter, stretch)))
		}
	}
	h[nameRatePolicy], h[nameRateLimit] = []string{string(policy)}, []string{string(limit)}
}

// triple sets the three fields of the first of policies. In the dialect of the draft,
// the first field also lists all policies that have a window. Reset is in seconds from
// now, or a Unix time if now is not zero. It is the wait if the limit denies, and
// otherwise the time until the whole quota is available. It is left out if that never
// happens.
func triple(h http.Header, names *[3]string, policies []Policy, stretch float64, now time.Time) {
	first := &policies[0]
	b := strconv.AppendInt(nil, bounded(first.Quota), 10)
	if names == &namesDraft03 {
		for i := range policies {
			p := &policies[i]
			if p.Window <= 0 {
				continue // the draft has no policy without a window
			}
			b = strconv.AppendInt(append(b, ", "...), bounded(p.Quota), 10)
			b = appendParameter(b, "w", wholeSeconds(p.Window))
			b = appendString(append(b, ";name="...), p.Name)
		}
	}
	h[names[0]], h[names[1]] = []string{string(b)}, number(bounded(first.Remaining))
	reset := first.ResetAfter
	if first.RetryAfter != 0 {
		reset = stretched(first.RetryAfter, stretch)
	}
	switch {
	case reset < 0:
	case now.IsZero():
		h[names[2]] = number(wholeSeconds(reset))
	default:
		h[names[2]] = number(now.Add(reset + time.Second - 1).Unix())
	}
}

// appendItem appends a String of RFC 9651 as the next item of a list.
func appendItem(b []byte, name string) []byte {
	if len(b) > 0 {
		b = append(b, ", "...)
	}
	return appendString(b, name)
}

// appendString appends a String of RFC 9651, which has only printable ASCII characters. Others become
// question marks, also because a line break would begin another header field.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c > '~':
			b = append(b, '?')
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// appendParameter appends a parameter that is an Integer of RFC 9651.
func appendParameter(b []byte, name string, n int64) []byte {
	b = append(append(append(b, ';'), name...), '=')
	return strconv.AppendInt(b, bounded(n), 10)
}

// bounded returns n within 0 and the largest Integer of RFC 9651, which has 15
// digits.
func bounded(n int64) int64 { return max(0, min(n, 999_999_999_999_999)) }
