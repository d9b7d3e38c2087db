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
type lateWords []lateWord

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
	lateBytes     = 24 // without room for words
	lateRoomBytes = mostLate * 32
)

// write writes the words to their blocks.
func (l *lateWords) write() {
	words := *l
	for i := range words {
		w := &words[i]
		w.segment.arena.words[w.slot.block().off+w.index] = w.word
		w.slot.tag = w.slot.tag.with(away)
	}
	clear(words) // so that they keep no slots alive
	*l = words[:0]
}

// Append adds a word to the state at r, which is in a block. It reports false, and has
// changed nothing, where the block is full.
func (t *Table) Append(r Ref, word uint64) bool {
	b := r.slot.block()
	if b.len == b.cap {
		return false
	}
	switch l := t.late; {
	case len(*l) < cap(*l):
	case len(*l) == 0:
		*l = make(lateWords, 0, mostLate)
		t.bytes += lateRoomBytes
	default:
		l.write()
	}
	*t.late = append(*t.late, lateWord{r.segment, r.slot, b.len, word})
	r.slot.tag = r.slot.tag.with(late)
	b.len++
	r.slot.move(b)
	r.slot.words[lastWord] = word
	return true
}
