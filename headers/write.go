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

// Names of header fields in their canonical form, so that no lookup has to
// convert them.
const (
	nameRetryAfter  = "Retry-After"
	nameDegraded    = "Weir-Degraded"
	nameRateLimit   = "Ratelimit"
	nameRatePolicy  = "Ratelimit-Policy"
	prefixDraft03   = "Ratelimit-"
	prefixLegacy    = "X-Ratelimit-"
	suffixLimit     = "Limit"
	suffixRemaining = "Remaining"
	suffixReset     = "Reset"
)

// Set writes l into h. The policies come tightest first: those that deny before
// those that admit, of those that deny the one with the longest wait first, and of
// those that admit the one with the fewest hits left. Set sorts l.Policies in this
// way. Dialects that have room for one policy get the tightest. Waits are rounded
// up to seconds.
func (f Format) Set(h http.Header, l *Limits) {
	switch f.Dialect {
	case "":
		f.Dialect = Draft
	case Draft, Draft03, Legacy, LegacyEpoch, RetryAfter:
	default:
		return
	}
	var room [256]byte
	var w fields
	b := room[:0]
	if l.Degraded != "" {
		b = append(b, l.Degraded...)
		w.end(nameDegraded, b)
	}
	stretch := 0.0
	if f.Jitter > 0 {
		stretch = f.Jitter * rand.Float64() // nothing secret depends on it
	}
	if l.RetryAfter > 0 {
		b = strconv.AppendInt(b, wholeSeconds(stretched(l.RetryAfter, stretch)), 10)
		w.end(nameRetryAfter, b)
	}
	if len(l.Policies) > 0 {
		tightest(l.Policies)
		switch f.Dialect {
		case Draft:
			b = w.draft(b, l.Policies, stretch)
		case Draft03:
			b = w.triple(b, prefixDraft03, l.Policies, stretch, time.Time{})
		case Legacy:
			b = w.triple(b, prefixLegacy, l.Policies[:1], stretch, time.Time{})
		case LegacyEpoch:
			b = w.triple(b, prefixLegacy, l.Policies[:1], stretch, time.Now())
		}
	}
	w.set(h, b)
}

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

// fields are the header fields whose values stand one behind the other in one
// text, so that all of them cost two allocations.
type fields struct {
	names [5]string
	ends  [5]int
	n     int
}

// end ends a field: its value is what b has behind the field before.
func (w *fields) end(name string, b []byte) {
	w.names[w.n], w.ends[w.n] = name, len(b)
	w.n++
}

// set sets the fields in h, whose values are in b.
func (w *fields) set(h http.Header, b []byte) {
	if w.n == 0 {
		return
	}
	text := string(b)
	values := make([]string, w.n)
	from := 0
	for i := range w.n {
		values[i] = text[from:w.ends[i]]
		h[w.names[i]] = values[i : i+1 : i+1]
		from = w.ends[i]
	}
}

// draft appends RateLimit-Policy and RateLimit, which are Lists of RFC 9651.
func (w *fields) draft(b []byte, policies []Policy, stretch float64) []byte {
	from := len(b)
	for i := range policies {
		p := &policies[i]
		b = appendItem(b, from, p.Name)
		b = appendParameter(b, "q", p.Quota)
		if p.Window > 0 {
			b = appendParameter(b, "w", wholeSeconds(p.Window))
		}
		if p.Unit != "" {
			b = appendString(append(b, ";qu="...), p.Unit)
		}
	}
	w.end(nameRatePolicy, b)
	from = len(b)
	for i := range policies {
		p := &policies[i]
		b = appendItem(b, from, p.Name)
		b = appendParameter(b, "r", p.Remaining)
		// t is the time until more is available. Only a denial has it.
		if p.RetryAfter > 0 {
			b = appendParameter(b, "t", wholeSeconds(stretched(p.RetryAfter, stretch)))
		}
	}
	w.end(nameRateLimit, b)
	return b
}

// triple appends the three fields Limit, Remaining and Reset of the first of
// policies, under a prefix. With the prefix of the draft, Limit also lists all
// policies that have a window. Reset
// is in seconds from now, or a Unix time if now is not zero. It is the wait if the
// limit denies, and otherwise the time until the whole quota is available. It is
// left out if that never happens.
func (w *fields) triple(b []byte, prefix string, policies []Policy, stretch float64, now time.Time) []byte {
	first := &policies[0]
	b = strconv.AppendInt(b, bounded(first.Quota), 10)
	if prefix == prefixDraft03 {
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
	w.end(fieldName(prefix, suffixLimit), b)
	b = strconv.AppendInt(b, bounded(first.Remaining), 10)
	w.end(fieldName(prefix, suffixRemaining), b)
	reset := first.ResetAfter
	if first.RetryAfter != 0 {
		reset = stretched(first.RetryAfter, stretch)
	}
	if reset < 0 {
		return b
	}
	seconds := wholeSeconds(reset)
	if !now.IsZero() {
		seconds = now.Add(reset + time.Second - 1).Unix()
	}
	b = strconv.AppendInt(b, seconds, 10)
	w.end(fieldName(prefix, suffixReset), b)
	return b
}

// fieldName returns prefix+suffix without an allocation.
func fieldName(prefix, suffix string) string {
	if prefix == prefixDraft03 {
		switch suffix {
		case suffixLimit:
			return prefixDraft03 + suffixLimit
		case suffixRemaining:
			return prefixDraft03 + suffixRemaining
		}
		return prefixDraft03 + suffixReset
	}
	switch suffix {
	case suffixLimit:
		return prefixLegacy + suffixLimit
	case suffixRemaining:
		return prefixLegacy + suffixRemaining
	}
	return prefixLegacy + suffixReset
}

// appendItem appends a String of RFC 9651 as the next item of a list that starts at
// from.
func appendItem(b []byte, from int, name string) []byte {
	if len(b) > from {
		b = append(b, ", "...)
	}
	return appendString(b, name)
}

// appendString appends a String of RFC 9651. Such a String has printable ASCII
// characters only; others become question marks, also because a line break would
// begin another header field.
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
