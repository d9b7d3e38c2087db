package window

// MaxWords is the most words that a state of l can have.
func (l *Compiled) MaxWords() int { return l.algorithm.words() }

// WithoutLog returns l without the fast path of plain logs.
func (l *Compiled) WithoutLog() *Compiled {
	slow := *l
	slow.log = nil
	return &slow
}
