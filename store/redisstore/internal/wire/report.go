package wire

// report passes on that the node was cut off, or that it answers again, or both:
// an answer may have closed the breaker, or a new link taken the place of a lost
// one, while the keeper was busy.
func (k *keeper) report(err error) {
	n := k.node
	opens, lost, out := n.breaker.openings(), k.empties.Load(), n.CutOff()
	opened, gone := opens != k.opens, lost != k.lost
	k.opens, k.lost = opens, lost
	if k.since == 0 && (out || opened || gone) {
		k.since, k.missed = elapsed(), n.Outages()
		k.cutOffs.Add(1)
		c := Change{Addr: n.addr, CutOff: true, Err: errGone}
		switch {
		case opened:
			c.Err = ErrCutOff
		case out && err != nil:
			c.Err = err
		}
		k.tell(c)
	}
	if k.since != 0 && !out {
		k.end(Change{Addr: n.addr})
	}
}

// end passes on that the time is over in which the node got no calls.
func (k *keeper) end(c Change) {
	c.Lasted, c.Missed = elapsed()-k.since, k.node.Outages()-k.missed
	k.since = 0
	k.tell(c)
}

func (k *keeper) tell(c Change) {
	if k.node.config.Changed != nil {
		k.node.config.Changed(c)
	}
}
