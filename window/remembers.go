package window

// Remembers reports whether s may hold something, or remember strikes or a ban. It
// looks at one word, so it is much faster than [Compiled.Read], which tells what
// there is.
func (l *Compiled) Remembers(s State) bool {
	switch {
	case len(s) == 0:
		return false
	case l.limit.Window.Kind == KindHeld:
		return true
	}
	return s[0] >= heldMark && (!l.anyWord || l.isBan(s))
}
