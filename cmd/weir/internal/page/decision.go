package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/top"
	"github.com/weirhq/weir/internal/jsontext"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// decision is a decision as the page shows it: one that was kept, or what a request would get now.
type decision struct {
	Number uint64  `json:"number,omitempty"`
	Time   instant `json:"time"`

	// Whole reports whether the decision is known as weir made it. Otherwise it is a line of the journal of
	// denials, about one rule.
	Whole bool `json:"whole"`

	Allowed    bool     `json:"allowed"`
	Outcome    string   `json:"outcome"`
	Rule       string   `json:"rule,omitempty"`
	RetryAfter *seconds `json:"retry_after,omitempty"` // of a denial
	RetryRule  string   `json:"retry_rule,omitempty"`
	Unmatched  bool     `json:"unmatched,omitempty"`
	Cause      string   `json:"degraded_reason,omitempty"`

	Hits       int64      `json:"hits,omitempty"`
	Attributes attributes `json:"attributes,omitempty"`
	Cut        bool       `json:"cut,omitempty"` // attributes are missing, or hidden, or shortened
	Rules      []judged   `json:"rules"`
	Differ     []differ   `json:"differ,omitempty"`

	// Test is the request as a step of a rules test. It is empty if attributes are missing.
	Test string `json:"test,omitempty"`
}

// judged is the answer of one rule.
type judged struct {
	Rule    string   `json:"rule"`
	Kind    string   `json:"kind"`
	Matched bool     `json:"matched"`
	Why     []string `json:"why,omitempty"` // it did not match, or decides nothing
	Shadow  bool     `json:"shadow,omitempty"`

	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason,omitempty"` // of a denial
	Cause   string `json:"degraded_reason,omitempty"`

	Numbers     bool     `json:"numbers"` // whether there are those that follow
	Key         string   `json:"key,omitempty"`
	Hits        int64    `json:"hits"`
	Used        int64    `json:"used"` // before this request
	Quota       *int64   `json:"quota,omitempty"`
	Remaining   *int64   `json:"remaining,omitempty"`
	RetryAfter  seconds  `json:"retry_after"`
	ResetAfter  seconds  `json:"reset_after"`
	BannedUntil instant  `json:"banned_until,omitzero"`
	Override    bool     `json:"override,omitempty"`
	Window      string   `json:"window,omitempty"`
	Unit        string   `json:"unit,omitempty"` // what is summed or distinct; empty: hits
	Leaving     *leaving `json:"leaving,omitempty"`
}

// differ is what would have had to differ for one rule to allow the request.
type differ struct {
	Rule   string `json:"rule"`
	Shadow bool   `json:"shadow,omitempty"`
	Reason string `json:"reason"`
	Unit   string `json:"unit,omitempty"`

	// Most is how much would have fit: 0 if nothing.
	Most *int64 `json:"most,omitempty"`
	// Wait is after how long the same request fits: -1 for never.
	Wait *seconds `json:"wait,omitempty"`
	// Quota is the lowest quota under which the request fits.
	Quota *int64 `json:"quota,omitempty"`
	// Until is the end of a ban.
	Until instant `json:"until,omitzero"`
}

// attributes are attributes of a request, as a JSON object in their order.
type attributes []weir.Attribute

// MarshalJSON implements [json.Marshaler].
func (a attributes) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i := range a {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendText(append(jsontext.AppendText(b, a[i].Name), ':'), a[i].Value)
	}
	return append(b, '}'), nil
}

// decisionOf returns a decision that was kept.
func decisionOf(k *top.Decision) decision {
	d := decision{
		Number: k.Number, Time: instant{k.Time}, Whole: true, Allowed: k.Allowed, Outcome: k.Outcome, Rule: k.Rule,
		RetryRule: k.RetryRule, Unmatched: k.Unmatched, Cause: string(k.Cause), Hits: k.Hits, Attributes: attributes(k.Attributes), Cut: k.Cut,
	}
	if !k.Allowed {
		wait := seconds(k.RetryAfter)
		d.RetryAfter = &wait
	}
	for i := range k.Judged {
		d.Rules = append(d.Rules, judgedOf(&k.Judged[i]))
	}
	d.complete()
	return d
}

// judgedOf returns the answer of a rule that was kept.
func judgedOf(k *top.Judged) judged {
	j := judged{
		Rule: k.Rule, Kind: k.Kind.String(), Matched: true, Shadow: k.Shadow, Allowed: k.Reason == "", Reason: string(k.Reason), Cause: string(k.Cause),
		Numbers: k.Reason != top.ReasonVerdict && k.Reason != top.ReasonOutage, Key: k.Key, Hits: k.Hits, Used: k.Used,
		RetryAfter: seconds(k.RetryAfter), ResetAfter: seconds(k.ResetAfter), BannedUntil: instant{k.BannedUntil}, Override: k.Override,
		Window: k.Limit, Unit: k.Unit,
	}
	if j.Numbers && k.Quota != window.Unlimited {
		j.Quota, j.Remaining = &k.Quota, &k.Remaining
	}
	return j
}

// lineOf returns a line of the journal.
func lineOf(l *top.Denial) decision {
	wait := seconds(l.RetryAfter)
	d := decision{Time: instant{l.Time}, Allowed: l.Shadow, Outcome: l.Outcome, Rule: l.Rule, Cause: string(l.Cause), Hits: l.Hits, Cut: true}
	if !l.Shadow {
		d.RetryAfter = &wait
	}
	j := judgedOf(&top.Judged{Denial: *l, Kind: rule.KindLimit})
	if l.Reason == top.ReasonVerdict {
		j.Kind = rule.KindVerdict.String()
	}
	j.Remaining = nil
	d.Rules = []judged{j}
	d.complete()
	return d
}

// explained returns what a request would get now.
func explained(hits int64, attrs []weir.Attribute, w *weir.Decision, why []weir.RuleExplanation, rules *rule.Set, now time.Time) decision {
	d := decision{
		Time: instant{now}, Whole: true, Allowed: w.Allowed, Outcome: w.Outcome, Rule: w.Rule, RetryRule: w.RetryRule, Unmatched: w.Unmatched,
		Cause: string(w.DegradedReason), Hits: hits, Attributes: attributes(attrs),
	}
	if !w.Allowed {
		wait := seconds(w.RetryAfter)
		d.RetryAfter = &wait
	}
	others := 0
	for i := range why {
		e := &why[i]
		if others++; !e.Matched && others > maxOthers {
			continue
		}
		j := judged{Rule: e.Rule, Kind: e.Kind.String(), Matched: e.Matched, Why: e.Reasons, Shadow: e.Shadow, Allowed: true}
		at, ok := rules.Find(e.Rule)
		switch {
		case e.Usage != nil:
			k := top.JudgedOf(rules, e.Usage)
			j = judgedOf(&k)
			j.Why = e.Reasons
		case e.Matched && e.Kind == rule.KindVerdict && ok && w.Rule == e.Rule && !w.Allowed:
			j.Allowed, j.Reason = false, string(top.ReasonVerdict)
		case e.Matched && e.Kind != rule.KindVerdict && w.Rule == e.Rule && !w.Allowed:
			j.Allowed, j.Reason, j.Cause = false, string(top.ReasonOutage), string(w.DegradedReason)
		}
		if ok && e.Kind != rule.KindVerdict {
			j.Window, j.Unit = rules.Rule(at).Window.String(), rules.Rule(at).Of
		}
		d.Rules = append(d.Rules, j)
	}
	d.complete()
	return d
}

// maxOthers is how many rules an explanation lists; those that match are all listed.
const maxOthers = 200

// complete sets what follows from the rest of d.
func (d *decision) complete() {
	for i := range d.Rules {
		if j := &d.Rules[i]; !j.Allowed {
			d.Differ = append(d.Differ, j.differ())
		}
	}
	if !d.Cut && len(d.Attributes) > 0 {
		d.Test = d.step()
	}
}

// differ returns what would have had to differ for j to allow the request.
func (j *judged) differ() differ {
	d := differ{Rule: j.Rule, Shadow: j.Shadow, Reason: j.Reason, Unit: j.Unit, Until: j.BannedUntil}
	if j.Reason == string(top.ReasonOutage) || j.Reason == string(top.ReasonVerdict) {
		return d
	}
	wait := j.RetryAfter
	d.Wait = &wait
	if j.Reason == string(top.ReasonLimit) && j.Quota != nil {
		most, quota := max(0, *j.Quota-j.Used), j.Used+j.Hits
		d.Most, d.Quota = &most, &quota
	}
	return d
}

// step returns the request of d as a step of a rules test, after a comment with what it found.
func (d *decision) step() string {
	var b strings.Builder
	for i := range d.Rules {
		if j := &d.Rules[i]; j.Numbers && j.Quota != nil && j.Used > 0 && j.Matched {
			fmt.Fprintf(&b, "# %s had used %d of %d\n", strings.Map(printable, j.Rule), j.Used, *j.Quota)
		}
	}
	text, _ := d.Attributes.MarshalJSON()
	fmt.Fprintf(&b, "- take: %s\n", text)
	if d.Hits != 1 {
		fmt.Fprintf(&b, "  hits: %d\n", d.Hits)
	}
	fmt.Fprintf(&b, "  expect: {allowed: %v, outcome: %s", d.Allowed, strconv.Quote(d.Outcome))
	if d.Rule != "" {
		fmt.Fprintf(&b, ", rule: %s", jsontext.AppendText(nil, d.Rule))
	}
	b.WriteString("}\n")
	return b.String()
}

// printable returns r, or a space for a character that would end a comment.
func printable(r rune) rune {
	if strconv.IsPrint(r) {
		return r
	}
	return ' '
}
