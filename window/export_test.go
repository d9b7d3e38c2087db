package window

// MaxWords is the most words that a state of l can have.
func (l *Compiled) MaxWords() int {
	n := l.algorithm.words()
	if l.limit.Hold > 0 {
		n = l.holding.words()
	}
	if l.Bans() {
		n += banWords
	}
	return n
}

// WithoutLog returns l without the fast path of plain logs.
func (l *Compiled) WithoutLog() *Compiled {
	slow := *l
	slow.log = nil
	return &slow
}
