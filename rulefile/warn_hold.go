package rulefile

import (
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// estimates warns of a sum that a settle does not correct, although it corrects
// that of another rule.
func (l *linter) estimates(i int) {
	r := &l.rules[i]
	if r.Measure != window.Sum || r.Holds() || r.Kind() == rule.KindVerdict {
		return
	}
	for j := range l.rules {
		if o := &l.rules[j]; o.Mode != rule.Off && o.Hold > 0 && o.Measure == window.Sum && o.Of == r.Of {
			l.warn(i, "sum-of-estimates", l.field(i, "sum"), "counts the %s of the take: a settle corrects %q, which holds them, and not this rule", r.Of, o.Name)
			return
		}
	}
}

// forgotten warns of hits that count for ever, and not longer than a process lives.
func (l *linter) forgotten(i int) {
	if r := &l.rules[i]; r.Kind() == rule.KindLimit && r.Window.Kind == window.KindEver {
		l.warn(i, "restart-forgets", l.field(i, "window"), "without a store or a data directory, a restart of the service forgets what counts for ever")
	}
}
