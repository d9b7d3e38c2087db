package table

// slot holds a key and its state: up to three words in the slot itself, or the
// place of the block that holds more.
type slot struct {
	tag   tag
	words [inline]uint64
}

// tag is the key of a slot and the length of its state: 61 bits of the hash,
// and below them the number of words in the slot, away or late. The zero tag is a
// free slot; a key's state has at least one word.
type tag uint64

const free tag = 0

const (
	inline = 3 // words in a slot
	away   = 7 // in place of their number: the words are in a block
	late   = 6 // as away, and some words are not in the block yet; see lateWords
	meta   = 7 // the bits of a tag that are not the hash's
)

func tagOf(h Hash, words int) tag { return tag(h)<<3 | tag(words) }

// is reports whether t is the tag of h.
func (t tag) is(h Hash) bool { return t != free && t&^meta == tag(h)<<3 }

// hash returns the hash without its three highest bits.
func (t tag) hash() Hash { return Hash(t >> 3) }

// words returns the number of words in the slot, or away or late.
func (t tag) words() int { return int(t & meta) }

// isAway reports whether the words are in a block, late ones included.
func (t tag) isAway() bool { return t.words() >= late }

// with returns t for a state of the given number of words.
func (t tag) with(words int) tag { return t&^meta | tag(words) }

// A slot whose state is away has the block in its first word, and the ends of the state
// in the others: a caller that needs only those saves two cache misses, that of the
// segment and that of the block.
const (
	placeWord = iota
	firstWord
	lastWord
)

// The block in a word: its offset, the length of the state, and the class of its
// capacity. States have less than 2^24 words, and the blocks of a segment less than 2^32.
const (
	offShift = 32
	lenShift = 8
	lenMask  = 1<<24 - 1
	capMask  = 1<<lenShift - 1
)

// block returns the block of s, whose state is away.
func (s *slot) block() block {
	w := s.words[placeWord]
	return block{off: int(w >> offShift), len: int(w >> lenShift & lenMask), cap: sizeOf(w & capMask)}
}

// move makes b the block of s. The state in b is the same as before.
func (s *slot) move(b block) {
	s.words[placeWord] = uint64(b.off)<<offShift | uint64(b.len)<<lenShift | classOf(b.cap)
}

// point makes b, whose state is state, the block of s.
func (s *slot) point(b block, state []uint64) {
	s.move(b)
	s.words[firstWord], s.words[lastWord] = state[0], state[b.len-1]
}

// resize sets the length of the state of s, which is away, and its ends. words are those
// of the arena. The rest of the word stays as it is: to take it apart and put it together
// again costs 1.5 % of a take under three rules.
func (s *slot) resize(n int, words []uint64) {
	w := s.words[placeWord]
	off := int(w >> offShift)
	s.words[placeWord] = w&^(lenMask<<lenShift) | uint64(n)<<lenShift
	s.words[firstWord], s.words[lastWord] = words[off], words[off+n-1]
}

// lengthen adds word to the state of s, which is away and whose block has room for it.
func (s *slot) lengthen(word uint64) {
	s.words[placeWord] += 1 << lenShift
	s.words[lastWord] = word
}

// find returns the index of the slot of h, or of the free slot where h would
// go. One of slots must be free.
func find(slots []slot, h Hash) (i int, known bool) {
	for i := h.slot(len(slots)); ; {
		switch tag := slots[i].tag; {
		case tag.is(h):
			return i, true
		case tag == free:
			return i, false
		}
		if i++; i == len(slots) {
			i = 0
		}
	}
}
