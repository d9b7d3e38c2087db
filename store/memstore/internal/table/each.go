package table

// Each calls f with the state of each key in the segment at an entry of the
// directory, from 0 on. It returns the entry of the next segment, which is
// [Table.Entries] or more after the last one. f must not change the state. A state
// that is lent is left out.
func (t *Table) Each(entry int, f func(state []uint64)) (next int) {
	if entry >= len(t.dir) {
		return entry + 1
	}
	g := t.dir[entry].segment
	for i := range g.slots {
		if s := &g.slots[i]; s.tag != free {
			if state := g.state(s); len(state) > 0 {
				f(state)
			}
		}
	}
	span := 1 << (t.depth - g.depth)
	return entry&^(span-1) + span
}
