package table

// Each calls f with the state of each key in the segment at an entry of the
// directory, from 0 on. It returns the entry of the next segment, which is
// [Table.Entries] or more after the last one. f must not change the state.
func (t *Table) Each(entry int, f func(state []uint64)) (next int) {
	if entry >= len(t.dir) {
		return entry + 1
	}
	g := t.dir[entry].segment
	for i := range g.slots {
		if s := &g.slots[i]; s.tag != free {
			f(g.state(s))
		}
	}
	span := 1 << (t.depth - g.depth)
	return entry&^(span-1) + span
}

// End is behind the last position of [Table.Walk].
const End = 1 << maxDepth

// Walk calls f for each key in the segment at a position, from 0 on, and returns
// the position of the next segment, which is [End] after the last one. Positions
// stay good while the table changes: a walk from 0 to End meets every key that the
// table has all the time. h lacks its three highest bits. f must not change the
// state.
func (t *Table) Walk(position int, f func(h Hash, state []uint64)) (next int) {
	if len(t.dir) == 0 || position >= End {
		return End
	}
	entry := position >> (maxDepth - t.depth)
	g := t.dir[entry].segment
	for i := range g.slots {
		if s := &g.slots[i]; s.tag != free {
			f(s.tag.hash(), g.state(s))
		}
	}
	span := 1 << (t.depth - g.depth)
	return (entry&^(span-1) + span) << (maxDepth - t.depth)
}
