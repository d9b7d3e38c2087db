package httpapi

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// appendDecision appends d as JSON.
func appendDecision(b []byte, d *weir.Decision) []byte {
	b = appendBool(append(b, `{"allowed":`...), d.Allowed)
	b = appendText(append(b, `,"outcome":`...), d.Outcome)
	if d.Rule != "" {
		b = appendText(append(b, `,"rule":`...), d.Rule)
	}
	if !d.Allowed {
		b = appendSeconds(append(b, `,"retry_after":`...), d.RetryAfter)
	}
	b = append(b, `,"limits":[`...)
	for i := range d.Usages {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendUsage(append(b, '{'), &d.Usages[i]), '}')
	}
	b = append(b, ']')
	if len(d.Verdicts) > 0 {
		b = appendTexts(append(b, `,"verdicts":`...), d.Verdicts)
	}
	if len(d.Triggered) > 0 {
		b = appendTexts(append(b, `,"triggered":`...), d.Triggered)
	}
	if d.Degraded {
		b = append(b, `,"degraded":true`...)
	}
	return append(b, '}')
}

// appendUsage appends the members of one rule's numbers. What does not limit
// has no quota and nothing that remains.
func appendUsage(b []byte, u *weir.Usage) []byte {
	b = appendText(append(b, `"rule":`...), u.Rule)
	if u.Kind != rule.KindLimit {
		b = appendText(append(b, `,"kind":`...), u.Kind.String())
	}
	if u.Shadow {
		b = append(b, `,"shadow":true`...)
	}
	b = appendText(append(b, `,"key":`...), u.Key)
	if u.Quota != window.Unlimited {
		b = appendInt(append(b, `,"quota":`...), u.Quota)
	}
	b = appendInt(append(b, `,"used":`...), u.Used)
	if u.Remaining != window.Unlimited {
		b = appendInt(append(b, `,"remaining":`...), u.Remaining)
	}
	if u.Kind == rule.KindLimit && u.RetryAfter != 0 {
		b = appendSeconds(append(b, `,"retry_after":`...), u.RetryAfter)
	}
	return appendSeconds(append(b, `,"reset_after":`...), u.ResetAfter)
}

// appendSeconds appends d in seconds as its shortest decimal, -1 for never.
func appendSeconds(b []byte, d time.Duration) []byte {
	if d < 0 {
		return append(b, "-1"...)
	}
	b = appendInt(b, int64(d/time.Second))
	fraction := d % time.Second
	if fraction == 0 {
		return b
	}
	b = append(b, '.')
	for unit := time.Second / 10; fraction > 0; unit /= 10 {
		b = append(b, '0'+byte(fraction/unit))
		fraction %= unit
	}
	return b
}

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

func appendBool(b []byte, v bool) []byte { return strconv.AppendBool(b, v) }

func appendTexts(b []byte, texts []string) []byte {
	b = append(b, '[')
	for i, t := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, t)
	}
	return append(b, ']')
}

// appendText appends s as a JSON string.
func appendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	plain := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[plain:i]...), "\uFFFD"...)
				plain = i + 1
			}
			i += n
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			b = append(b, s[plain:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			default:
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			plain = i + 1
		}
		i++
	}
	return append(append(b, s[plain:]...), '"')
}
