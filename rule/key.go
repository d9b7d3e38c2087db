package rule

import (
	"strconv"

	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/window"
)

// identity returns the ID of r; see [ruleset.Compiled.ID].
func identity(r *Rule) string {
	if r.Kind() == KindVerdict {
		return string(ruleset.AppendKey(nil, r.Name))
	}
	after := ""
	if r.After != (window.After{}) {
		after = r.After.Window.ID()
	}
	id := ruleset.AppendKey(nil, r.Name, r.Measure.String(), r.Of, r.window().ID(), after)
	id = ruleset.AppendKey(id, r.Per...)
	for _, name := range r.Per {
		if n, ok := r.Networks[name]; ok {
			id = ruleset.AppendKey(id, "network", name, strconv.Itoa(n.V4), strconv.Itoa(n.V6))
		}
	}
	return string(id)
}
