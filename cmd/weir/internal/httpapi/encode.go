package httpapi

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/jsontext"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// appendDecision appends d, the answer to verb, as JSON.
func appendDecision(b []byte, verb store.Verb, d *weir.Decision) []byte {
	b = strconv.AppendBool(append(b, `{"allowed":`...), d.Allowed)
	b = jsontext.AppendText(append(b, `,"outcome":`...), d.Outcome)
	if d.Rule != "" {
		b = jsontext.AppendText(append(b, `,"rule":`...), d.Rule)
	}
	if !d.Allowed {
		b = jsontext.AppendSeconds(append(b, `,"retry_after":`...), d.RetryAfter)
		if d.RetryRule != "" {
			b = jsontext.AppendText(append(b, `,"retry_rule":`...), d.RetryRule)
		}
	}
	if !d.Receipt.IsZero() {
		b = append(d.Receipt.Take.Append(append(b, `,"receipt":"`...)), '"')
	}
	b = append(b, `,"limits":[`...)
	for i := range d.Usages {
		if i > 0 {
			b = append(b, ',')
		}
		u := &d.Usages[i]
		b = appendUsage(append(b, '{'), u)
		if u.Held || verb.NeedsReceipt() {
			b = strconv.AppendBool(append(b, `,"held":`...), u.Held)
		}
		if verb == store.Record && (u.Hits == 0 || u.Banned) {
			b = append(b, `,"counted":false`...)
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	if len(d.Verdicts) > 0 {
		b = jsontext.AppendTexts(append(b, `,"verdicts":`...), d.Verdicts)
	}
	if len(d.Triggered) > 0 {
		b = jsontext.AppendTexts(append(b, `,"triggered":`...), d.Triggered)
	}
	if d.Unmatched {
		b = append(b, `,"unmatched":true`...)
	}
	if d.Replayed {
		b = append(b, `,"replayed":true`...)
	}
	if d.Degraded {
		b = jsontext.AppendText(append(b, `,"degraded":true,"degraded_reason":`...), string(d.DegradedReason))
	}
	return append(b, '}')
}

// appendUsage appends the members of one rule's numbers. A counter has no quota
// and no remainder.
func appendUsage(b []byte, u *weir.Usage) []byte {
	b = jsontext.AppendText(append(b, `"rule":`...), u.Rule)
	if u.Kind != rule.KindLimit {
		b = jsontext.AppendText(append(b, `,"kind":`...), u.Kind.String())
	}
	if u.Shadow {
		b = append(b, `,"shadow":true`...)
	}
	b = jsontext.AppendText(append(b, `,"key":`...), u.Key)
	if u.Quota != window.Unlimited {
		b = strconv.AppendInt(append(b, `,"quota":`...), u.Quota, 10)
	}
	b = strconv.AppendInt(append(b, `,"used":`...), u.Used, 10)
	if u.Remaining != window.Unlimited {
		b = strconv.AppendInt(append(b, `,"remaining":`...), u.Remaining, 10)
	}
	if u.Kind == rule.KindLimit && u.RetryAfter != 0 {
		b = jsontext.AppendSeconds(append(b, `,"retry_after":`...), u.RetryAfter)
	}
	b = jsontext.AppendSeconds(append(b, `,"reset_after":`...), u.ResetAfter)
	if u.BannedUntil != 0 {
		b = appendTime(append(b, `,"banned_until":`...), u.BannedUntil.Time())
	}
	if u.Overridden {
		b = append(b, `,"override":true`...)
	}
	return b
}

// appendTime appends t in UTC, to the microsecond.
func appendTime(b []byte, t time.Time) []byte {
	b = t.UTC().Truncate(time.Microsecond).AppendFormat(append(b, '"'), time.RFC3339Nano)
	return append(b, '"')
}

// appendJSON appends v, which has no values that cannot be encoded.
func appendJSON(b []byte, v any) []byte {
	text := bytes.NewBuffer(b)
	e := json.NewEncoder(text)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}
