package table

// A word that is appended to a state in a block ([Table.Append]) is written to the slot
// at once, as the last word of the state, and to the block later: the table notes such
// words, and writes mostLate of them together. Among a million keys each of these writes
// meets two cache misses, of the segment and of the block. A call that writes one word
// waits for both before it can unlock. When the words are written together, the processor
// waits for all of them at the same time: a take among a million keys in sliding windows
// takes 12 % less time.

// mostLate is how many words are written together: about as many as the processor can
// wait for at the same time.
const mostLate = 8

// lateWords are the words that are in no block yet.
type lateWords struct {
	noted []lateWord

	// last is the key of the last word. A word more for the same key is written at once:
	// its block is in the cache. Without that a take of a hot key takes 7 % more time.
	last tag
}

// lateWord is the word of a state at an index. The state is in a block, and its slot in
// segment.
type lateWord struct {
	segment *segment
	slot    *slot
	index   int
	word    uint64
}

// What lateWords take, in bytes.
const (
	lateBytes     = 32 // without room for words
	lateRoomBytes = mostLate * 32
)

// write writes the words to their blocks. It is not inlined so that the functions that
// seldom call it stay small.
//
//go:noinline
func (l *lateWords) write() {
	for i := range l.noted {
		w := &l.noted[i]
		w.segment.arena.words[w.slot.block().off+w.index] = w.word
		w.slot.tag = w.slot.tag.with(away)
	}
	clear(l.noted) // so that they keep no slots alive
	l.noted = l.noted[:0]
}

// Append adds a word to the state at r, which is in a block. It reports false, and has
// changed nothing, where the block is full.
func (t *Table) Append(r Ref, word uint64) bool {
	b := r.slot.block()
	if b.len == b.cap {
		return false
	}
	if key := r.slot.tag.with(away); t.late.last == key {
		r.segment.arena.words[b.off+b.len] = word
	} else {
		t.late.last = key
		t.appendLate(r, b.len, word)
	}
	r.slot.lengthen(word)
	return true
}

// appendLate notes the word of the state at r at an index, and first writes the noted
// ones if there is no room for another one.
func (t *Table) appendLate(r Ref, index int, word uint64) {
	l := t.late
	if l.noted == nil {
		l.noted = make([]lateWord, 0, mostLate)
		t.bytes += lateRoomBytes
	}
	if len(l.noted) == mostLate {
		l.write()
	}
	l.noted = append(l.noted, lateWord{r.segment, r.slot, index, word})
	r.slot.tag = r.slot.tag.with(late)
}
