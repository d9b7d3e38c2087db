package rule

import "github.com/weirhq/weir/window"

// Holds reports whether takes hold their hits under r, until a receipt ends that.
func (r *Rule) Holds() bool { return r.Hold > 0 || r.Window.Kind == window.KindHeld }
