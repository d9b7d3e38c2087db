package rpcwire

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/receipt"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// AppendDecision appends d, a message of type weir.v1.Decision.
func AppendDecision(b []byte, d *weir.Decision) []byte {
	b = appendBool(b, 1, d.Allowed)
	b = appendText(b, 2, d.Outcome)
	b = appendText(b, 3, d.Rule)
	b = appendDuration(b, 4, d.RetryAfter)
	b = appendText(b, 5, d.RetryRule)
	var start int
	if !d.Receipt.IsZero() {
		b, start = open(b, 6)
		b = shut(d.Receipt.Append(b), start)
	}
	for i := range d.Usages {
		b, start = open(b, 7)
		b = shut(AppendUsage(b, &d.Usages[i]), start)
	}
	b = appendTexts(b, 8, d.Verdicts)
	b = appendTexts(b, 9, d.Triggered)
	b = appendBool(b, 10, d.Unmatched)
	b = appendBool(b, 11, d.Degraded)
	b = appendText(b, 12, string(d.DegradedReason))
	return appendDuration(b, 13, d.Hold)
}

func appendTexts(b []byte, number protowire.Number, texts []string) []byte {
	for _, text := range texts {
		b = protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), text)
	}
	return b
}

// AppendUsage appends u, a message of type weir.v1.RuleUsage.
func AppendUsage(b []byte, u *weir.Usage) []byte {
	b = appendText(b, 1, u.Rule)
	b = appendInt(b, 2, int64(u.Kind)+1)
	b = appendText(b, 3, u.Key)
	b = appendBool(b, 4, u.Shadow)
	b = appendBool(b, 5, u.Allowed)
	b = appendInt(b, 6, u.Hits)
	if u.Quota != window.Unlimited {
		b = appendAny(b, 7, u.Quota)
	}
	b = appendInt(b, 8, u.Used)
	if u.Remaining != window.Unlimited {
		b = appendAny(b, 9, u.Remaining)
	}
	b = appendDuration(b, 10, u.RetryAfter)
	b = appendDuration(b, 11, u.ResetAfter)
	b = appendBool(b, 12, u.Held)
	b = appendBool(b, 13, u.Banned)
	b = appendInstant(b, 14, u.BannedUntil)
	b = appendBool(b, 15, u.Struck)
	return appendInt(b, 16, u.Before)
}

// ReadDecision reads b, a weir.v1.Decision, into d. It reuses the slices of d, and
// keeps nothing of b. Rules of d is nil.
func ReadDecision(b []byte, d *weir.Decision) (err error) {
	usages, verdicts, triggered := d.Usages[:0], d.Verdicts[:0], d.Triggered[:0]
	*d = weir.Decision{Outcome: d.Outcome, Rule: d.Rule, RetryRule: d.RetryRule}
	own := copied{from: b}
	var has struct{ outcome, rule, retryRule bool }
	var f field
	for len(b) > 0 {
		if b, err = next(b, &f); err != nil {
			return err
		}
		switch {
		case f.number == 1 && f.isNumber():
			d.Allowed = f.n != 0
		case f.number == 2 && f.isBytes():
			d.Outcome, has.outcome = own.text(f.bytes, d.Outcome), true
		case f.number == 3 && f.isBytes():
			d.Rule, has.rule = own.text(f.bytes, d.Rule), true
		case f.number == 4 && f.isBytes():
			d.RetryAfter, err = duration(f.bytes)
		case f.number == 5 && f.isBytes():
			d.RetryRule, has.retryRule = own.text(f.bytes, d.RetryRule), true
		case f.number == 6 && f.isBytes():
			d.Receipt, err = receipt.Parse(view(f.bytes))
		case f.number == 7 && f.isBytes():
			usages = slices.Grow(usages, 1)[:len(usages)+1]
			err = readUsage(f.bytes, &usages[len(usages)-1], &own)
		case f.number == 8 && f.isBytes():
			verdicts = append(verdicts, own.text(f.bytes, ""))
		case f.number == 9 && f.isBytes():
			triggered = append(triggered, own.text(f.bytes, ""))
		case f.number == 10 && f.isNumber():
			d.Unmatched = f.n != 0
		case f.number == 11 && f.isNumber():
			d.Degraded = f.n != 0
		case f.number == 12 && f.isBytes():
			d.DegradedReason = store.Reason(own.text(f.bytes, ""))
		case f.number == 13 && f.isBytes():
			d.Hold, err = duration(f.bytes)
		}
		if err != nil {
			return errMessage
		}
	}
	if !has.outcome {
		d.Outcome = ""
	}
	if !has.rule {
		d.Rule = ""
	}
	if !has.retryRule {
		d.RetryRule = ""
	}
	d.Usages, d.Verdicts, d.Triggered = usages, verdicts, triggered
	return nil
}

// ReadUsage reads b, a weir.v1.RuleUsage, and keeps nothing of it.
func ReadUsage(b []byte, u *weir.Usage) error { return readUsage(b, u, &copied{from: b}) }

// readUsage reads b into u, whose texts it uses again where they are the same.
func readUsage(b []byte, u *weir.Usage, own *copied) (err error) {
	name, key := u.Rule, u.Key
	*u = weir.Usage{}
	u.Quota, u.Remaining = window.Unlimited, window.Unlimited
	var f field
	for len(b) > 0 {
		if b, err = next(b, &f); err != nil {
			return err
		}
		switch {
		case f.number == 1 && f.isBytes():
			u.Rule = own.text(f.bytes, name)
		case f.number == 2 && f.isNumber():
			u.Kind = rule.Kind(f.n - 1) //nolint:gosec // a kind of a later version has no name
		case f.number == 3 && f.isBytes():
			u.Key = own.text(f.bytes, key)
		case f.number == 4 && f.isNumber():
			u.Shadow = f.n != 0
		case f.number == 5 && f.isNumber():
			u.Allowed = f.n != 0
		case f.number == 6 && f.isNumber():
			u.Hits = int64(f.n) //nolint:gosec // two's complement
		case f.number == 7 && f.isNumber():
			u.Quota = int64(f.n) //nolint:gosec // as above
		case f.number == 8 && f.isNumber():
			u.Used = int64(f.n) //nolint:gosec // as above
		case f.number == 9 && f.isNumber():
			u.Remaining = int64(f.n) //nolint:gosec // as above
		case f.number == 10 && f.isBytes():
			u.RetryAfter, err = duration(f.bytes)
		case f.number == 11 && f.isBytes():
			u.ResetAfter, err = duration(f.bytes)
		case f.number == 12 && f.isNumber():
			u.Held = f.n != 0
		case f.number == 13 && f.isNumber():
			u.Banned = f.n != 0
		case f.number == 14 && f.isBytes():
			u.BannedUntil, err = instant(f.bytes)
		case f.number == 15 && f.isNumber():
			u.Struck = f.n != 0
		case f.number == 16 && f.isNumber():
			u.Before = int64(f.n) //nolint:gosec // as above
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copied is a copy of a message, made when the first text of it is kept.
type copied struct {
	from []byte
	all  string
}

// text returns b, a part of the message, as a string: old if that is the same, and
// otherwise a part of the copy.
func (c *copied) text(b []byte, old string) string {
	if len(b) == 0 {
		return ""
	}
	if old == string(b) {
		return old
	}
	switch string(b) {
	case rule.Allow:
		return rule.Allow
	case rule.Deny:
		return rule.Deny
	}
	if c.all == "" {
		c.all = string(c.from)
	}
	at := cap(c.from) - cap(b) // b is a part of c.from
	return c.all[at : at+len(b)]
}
