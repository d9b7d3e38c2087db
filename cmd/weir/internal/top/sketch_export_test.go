package top

// Len returns the number of keys in s.
func (s *Sketch) Len() int { return len(s.slots) }
