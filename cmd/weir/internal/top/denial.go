package top

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Reason is why a rule denied a take.
type Reason string

const (
	ReasonLimit   Reason = "limit"   // the hits did not fit into the quota
	ReasonBan     Reason = "ban"     // the key was banned before
	ReasonHolds   Reason = "holds"   // the key had the maximum number of holds
	ReasonVerdict Reason = "verdict" // the rule denies whatever matches it
	ReasonOutage  Reason = "outage"  // the store did not answer; on_outage denied
)

// reasons are the codes of the reasons in a journal. They must not change.
var reasons = [...]Reason{ReasonLimit, ReasonBan, ReasonHolds, ReasonVerdict, ReasonOutage}

// inShadow marks the code of a reason of a rule in shadow mode, and byOverride that of a denial by
// an override.
const inShadow, byOverride = 0x80, 0x40

// Denial is one take that one rule denied, or would have denied in shadow mode.
type Denial struct {
	Time    time.Time // in whole microseconds
	Rule    string
	Key     string // empty for a verdict and after an outage
	Reason  Reason
	Outcome string // of the decision
	Shadow  bool   // the rule is in shadow mode and did not deny

	// Override reports whether the quota was that of an override.
	Override bool

	// Hits is the number of hits that the take asked of the rule. Used, before the
	// take, and Quota are the rule's numbers. All are 0 without numbers.
	Hits, Used, Quota int64

	// BannedUntil is the end of the key's ban, which this take may have started. It is
	// zero if the key is not banned.
	BannedUntil time.Time

	// RetryAfter is the wait until the same hits fit, or [window.Never].
	RetryAfter time.Duration

	// Cause is the reason of an outage, and empty without one.
	Cause store.Reason
}

// timeSize is the size of the instant with which the text of a denial begins, in
// big-endian order. Its first byte is 0 in this format.
const timeSize = 8

// appendDenial appends the text of d, without its rule, and with key instead of its own.
func appendDenial(b []byte, d *Denial, key []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(window.At(d.Time)))
	code := byte(max(slices.Index(reasons[:], d.Reason), 0))
	if d.Shadow {
		code |= inShadow
	}
	if d.Override {
		code |= byOverride
	}
	b = append(b, code)
	b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
	b = append(binary.AppendUvarint(b, uint64(len(d.Outcome))), d.Outcome...)
	b = append(binary.AppendUvarint(b, uint64(len(d.Cause))), d.Cause...)
	until := int64(0)
	if !d.BannedUntil.IsZero() {
		until = int64(window.At(d.BannedUntil))
	}
	for _, n := range [...]int64{d.Hits, d.Used, d.Quota, int64(d.RetryAfter), until} {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// instantOf returns the instant of the denial with a text.
func instantOf(text []byte) window.Instant {
	if len(text) < timeSize || text[0] != 0 {
		return 0
	}
	return window.Instant(binary.BigEndian.Uint64(text))
}

// readDenial reads a text of [appendDenial]. It reports false for any other text.
func readDenial(rule string, text []byte) (d Denial, ok bool) {
	if len(text) <= timeSize || int(text[timeSize]&^(inShadow|byOverride)) >= len(reasons) || text[0] != 0 {
		return d, false
	}
	code := text[timeSize]
	d = Denial{Time: instantOf(text).Time(), Rule: rule, Reason: reasons[code&^(inShadow|byOverride)], Shadow: code&inShadow != 0, Override: code&byOverride != 0}
	text = text[timeSize+1:]
	ok = true
	part := func() string {
		p, rest, found := store.CutKey(text)
		text, ok = rest, ok && found
		return string(p)
	}
	number := func() int64 {
		v, size := binary.Varint(text)
		if size <= 0 {
			ok, size = false, 0
		}
		text = text[size:]
		return v
	}
	d.Key, d.Outcome, d.Cause = part(), part(), store.Reason(part())
	d.Hits, d.Used, d.Quota, d.RetryAfter = number(), number(), number(), time.Duration(number())
	if until := number(); until != 0 {
		d.BannedUntil = window.Instant(until).Time()
	}
	return d, ok && len(text) == 0
}
