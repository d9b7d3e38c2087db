package httpapi

import (
	"strconv"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/answer"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// appendDecision appends d as JSON.
func appendDecision(b []byte, d *weir.Decision) []byte {
	b = appendBool(append(b, `{"allowed":`...), d.Allowed)
	b = answer.AppendText(append(b, `,"outcome":`...), d.Outcome)
	if d.Rule != "" {
		b = answer.AppendText(append(b, `,"rule":`...), d.Rule)
	}
	if !d.Allowed {
		b = answer.AppendSeconds(append(b, `,"retry_after":`...), d.RetryAfter)
		if d.RetryRule != "" {
			b = answer.AppendText(append(b, `,"retry_rule":`...), d.RetryRule)
		}
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
		b = answer.AppendTexts(append(b, `,"verdicts":`...), d.Verdicts)
	}
	if len(d.Triggered) > 0 {
		b = answer.AppendTexts(append(b, `,"triggered":`...), d.Triggered)
	}
	if d.Unmatched {
		b = append(b, `,"unmatched":true`...)
	}
	if d.Degraded {
		b = answer.AppendText(append(b, `,"degraded":true,"degraded_reason":`...), string(d.DegradedReason))
	}
	return append(b, '}')
}

// appendUsage appends the members of one rule's numbers. A counter has no quota
// and no remainder.
func appendUsage(b []byte, u *weir.Usage) []byte {
	b = answer.AppendText(append(b, `"rule":`...), u.Rule)
	if u.Kind != rule.KindLimit {
		b = answer.AppendText(append(b, `,"kind":`...), u.Kind.String())
	}
	if u.Shadow {
		b = append(b, `,"shadow":true`...)
	}
	b = answer.AppendText(append(b, `,"key":`...), u.Key)
	if u.Quota != window.Unlimited {
		b = appendInt(append(b, `,"quota":`...), u.Quota)
	}
	b = appendInt(append(b, `,"used":`...), u.Used)
	if u.Remaining != window.Unlimited {
		b = appendInt(append(b, `,"remaining":`...), u.Remaining)
	}
	if u.Kind == rule.KindLimit && u.RetryAfter != 0 {
		b = answer.AppendSeconds(append(b, `,"retry_after":`...), u.RetryAfter)
	}
	return answer.AppendSeconds(append(b, `,"reset_after":`...), u.ResetAfter)
}

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

func appendBool(b []byte, v bool) []byte { return strconv.AppendBool(b, v) }
