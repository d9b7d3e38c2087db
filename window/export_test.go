package window

// MaxWords is the most words that a state of l can have.
func (l *Compiled) MaxWords() int { return l.algorithm.words() }
