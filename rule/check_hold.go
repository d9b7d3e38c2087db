package rule

import "github.com/weirhq/weir/window"

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
