package rule

import (
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/window"
)

// checkMeasure checks what the rule counts.
func (c *checker) checkMeasure() {
	switch field := c.Measure.String(); c.Measure {
	case window.Count:
		if c.Of != "" {
			c.fault("sum", "%q is named, but the rule counts hits", c.Of)
		}
	case window.Sum, window.Distinct:
		if c.Of == "" {
			c.fault(field, "names no attribute")
		}
	default:
		c.fault("sum", "unknown measure, want count, sum or distinct")
	}
	if c.Measure == window.Distinct && c.Kind() == KindCounter {
		c.fault("distinct", "needs a limit or a trigger: without one the members of a key could not be bounded")
	}
}

// checkEffect checks what the rule does: limit, trigger, then, mode and the
// rest.
func (c *checker) checkEffect() {
	c.checkQuota()
	if c.Trigger < 0 || c.Trigger > window.MaxHits {
		c.fault("trigger", "%d: want 1 to %d", c.Trigger, window.MaxHits)
	}
	if c.Quota != nil && c.Trigger != 0 {
		c.fault("trigger", "a rule has a limit or a trigger: make two rules of it")
	}
	if c.Once && c.Trigger == 0 {
		c.fault("once", "is for triggers")
	}
	switch {
	case c.Near < 0 || c.Near > 100:
		c.fault("near", "%d%%: want 1%% to 100%%", c.Near)
	case c.Near > 0 && c.Quota == nil:
		c.fault("near", "is for limits")
	}
	c.checkThen()
	if c.CountRest && c.Kind() != KindVerdict {
		c.fault("rest", "is for rules that decide at once, with then and no limit: others don't end the matching")
	}
	c.checkFeedback()
	c.checkHold()
	if c.Mode > Off {
		c.fault("mode", "unknown, want enforce, shadow or off")
	}
	if kind := c.Kind(); c.Mode == Shadow && (kind == KindTrigger || kind == KindCounter) {
		c.fault("mode", "a %s never decides, shadow is for rules that do", kind)
	}
	if c.OnOutage > OutageDeny {
		c.fault("on_outage", "unknown, want local, allow or deny")
	}
	switch {
	case !c.CountDenied:
	case c.Kind() != KindLimit:
		c.fault("count_denied", "is for rules with a limit")
	case c.Measure == window.Distinct:
		c.fault("count_denied", "does not go with distinct: a denied member would take the place of one that was admitted")
	}
	if c.Code < 0 {
		c.fault("code", "%d: want a number from 1 on, or 0 for none", c.Code)
	}
	if c.MaxKeys < 0 {
		c.fault("max_keys", "%d: want a number of keys, or 0 for the default", c.MaxKeys)
	}
}

// checkThen checks the outcome.
func (c *checker) checkThen() {
	switch {
	case c.Then == "":
	case !slices.Contains(c.known, c.Then):
		c.fault("then", "unknown outcome %s: want %s", ruleset.Quoted(c.Then), strings.Join(c.known, ", "))
	case c.Kind() == KindTrigger:
		c.fault("then", "a trigger reports and never decides, drop this or use limit")
	case c.Kind() == KindLimit && c.Then == Allow:
		c.fault("then", "allowing what is over the limit makes no sense, to only watch use mode: shadow")
	case c.Kind() == KindLimit && c.outcomes[c.Then].Allow:
		c.fault("then", "outcome %s allows, and allowing what is over the limit makes no sense: want one that denies", ruleset.Quoted(c.Then))
	}
}

// checkFeedback checks the hits that a refund with a name gives back.
func (c *checker) checkFeedback() {
	switch {
	case len(c.Feedback) == 0:
		return
	case c.Kind() != KindLimit:
		c.fault("feedback", "is for rules with a limit")
	case c.Measure == window.Distinct:
		c.fault("feedback", "gives back hits, and this rule counts members: want one that counts hits or a sum")
	}
	for _, event := range slices.Sorted(maps.Keys(c.Feedback)) {
		if event == "" {
			c.fault("feedback", "has a number without a name, want one such as solved")
		}
		if n := c.Feedback[event]; n != window.All && (n < 1 || n > window.MaxHits) {
			c.fault("feedback."+event, "%d: want 1 to %d, or all", n, window.MaxHits)
		}
	}
}

// checkQuota checks the numbers that the rule admits.
func (c *checker) checkQuota() {
	q := c.Quota
	if q == nil {
		return
	}
	within := func(field string, n int64) {
		if n < 0 || n > window.MaxHits {
			c.fault(field, "%d: want 0 to %d", n, window.MaxHits)
		}
	}
	switch {
	case q.By != "" && q.Of != "":
		c.fault("limit.of", "a quota depends on one attribute, by or of: drop one of them")
	case q.Of == "" && q.Most != 0:
		c.fault("limit.most", "goes with of")
	case q.Of != "" && (q.Most < 1 || q.Most > window.MaxHits):
		c.fault("limit.most", "%d: want the highest quota, 1 to %d", q.Most, window.MaxHits)
	case q.Of != "" && len(q.Cases) > 0:
		c.fault("limit.by", "names no attribute")
	case q.By != "" && len(q.Cases) == 0:
		c.fault("limit", "names no value of %q and its quota", q.By)
	case q.Attribute() == "":
		within("limit", q.Value)
		if len(q.Cases) > 0 || q.Else != nil {
			c.fault("limit.by", "names no attribute")
		}
		return
	}
	for _, value := range q.caseNames() {
		if value == "" {
			c.fault("limit", "has a quota for an empty %q, use else", q.By)
		}
		within("limit."+value, q.Cases[value])
	}
	if q.Else != nil {
		within("limit.else", *q.Else)
	}
}

// checkVerdict reports fields of a verdict that only rules which count can
// have.
func (c *checker) checkVerdict() {
	refuse := func(field string, set bool) {
		if set {
			c.fault(field, "a rule with then but no limit decides at once and counts nothing: add a limit, or drop this")
		}
	}
	refuse("per", len(c.Per) > 0)
	refuse("together", c.Together != "")
	refuse(c.Measure.String(), c.Measure != window.Count)
	refuse("window", c.Window != window.Window{})
	refuse("after", c.After != window.After{})
	refuse("max_keys", c.MaxKeys > 0)
	refuse("export", c.Export)
	refuse("lease", c.Lease != 0)
}

// checkHold checks what the rule says about holds and bans beyond its limit,
// which package window checks.
func (c *checker) checkHold() {
	kind := c.Kind()
	limited := func(field string, set bool) {
		if set && kind != KindLimit {
			c.fault(field, "is for rules with a limit")
		}
	}
	limited("hold", c.Hold != 0)
	limited("unsettled", c.Release && c.Hold == 0)
	limited("max_holds", c.MaxHolds != 0 && c.Hold == 0)
	limited("ban", c.Ban != window.Ban{})
	limited("lease", c.Lease != 0 && kind != KindVerdict)
	switch {
	case c.Lease == 0 || kind != KindLimit:
	case c.Lease < window.LeaseStrict || c.Lease > window.MaxHits:
		c.fault("lease", "%d: want a credit of 1 to %d hits, or strict", c.Lease, window.MaxHits)
	case c.Measure == window.Distinct || c.Hold != 0 || c.Ban != (window.Ban{}) || c.After != (window.After{}) || c.CountDenied:
		c.fault("lease", "does not go with distinct, hold, ban, after and count_denied: the store decides those requests")
	case c.Window.Kind == window.KindHeld || c.Window.Kind == window.KindEver:
		c.fault("lease", "does not go with held and ever windows")
	case c.Export:
		c.fault("lease", "does not go with export: what is leased and not given back in time would be exported as used")
	}
	held := c.Window.Kind == window.KindHeld
	switch {
	case held && kind != KindLimit && kind != KindVerdict:
		c.fault("window", "a held window is for rules with a limit")
	case c.CountDenied && held:
		c.fault("count_denied", "does not go with a held window: what is denied is not in flight")
	case c.CountDenied && c.Hold != 0:
		c.fault("count_denied", "does not go with hold: what is denied is never settled")
	case held && len(c.Feedback) > 0:
		c.fault("feedback", "does not go with a held window: only a receipt gives a place back")
	}
}
