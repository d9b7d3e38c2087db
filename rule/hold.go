package rule

import "github.com/weirhq/weir/window"

// Holds reports whether takes hold hits under r: r has Hold, or its window is held.
func (r *Rule) Holds() bool { return r.Hold > 0 || r.Window.Kind == window.KindHeld }
