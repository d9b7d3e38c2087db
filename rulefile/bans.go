package rulefile

import (
	"time"

	"github.com/weirhq/weir/window"
)

var banKeys = []string{"for", "factor", "most", "forget"}

// ban reads how long keys are banned: a length of time, or a table.
func (p *pass) ban(n *node) (b window.Ban) {
	switch {
	case n == nil:
		return b
	case n.kind != aTable:
		b.For = p.duration(n, nil)
		return b
	}
	f := p.fields(n, banKeys)
	if f["for"] == nil {
		p.fault(n, "ban has no for: want {for: 15m, factor: 2, most: 1d, forget: 7d}, or a length of time such as 15m")
		return b
	}
	return window.Ban{
		For: p.length(f["for"]), Factor: p.whole(f["factor"], 1, 1000),
		Most: p.length(f["most"]), Forget: p.length(f["forget"]),
	}
}

// length returns a length of time, and 0 where there is none.
func (p *pass) length(n *node) time.Duration {
	if n == nil {
		return 0
	}
	return p.duration(n, nil)
}
