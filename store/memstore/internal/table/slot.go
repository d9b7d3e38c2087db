package table

// slot holds a key and its state: up to three words in the slot itself, or the
// place of the block that holds more.
type slot struct {
	tag   tag
	words [inline]uint64
}

// tag is the key of a slot and the length of its state: 61 bits of the hash,
// and below them the number of words in the slot, or away. The zero tag is a
// free slot; a key's state has at least one word.
type tag uint64

const free tag = 0

const (
	inline = 3 // words in a slot
	away   = 7 // instead of their number: the words are in a block
	meta   = 7 // the bits of a tag that are not the hash's
)

func tagOf(h Hash, words int) tag { return tag(h)<<3 | tag(words) }

// is reports whether t is the tag of h.
func (t tag) is(h Hash) bool { return t != free && t&^meta == tag(h)<<3 }

// hash returns the hash without its three highest bits.
func (t tag) hash() Hash { return Hash(t >> 3) }

// words returns the number of words in the slot, or away.
func (t tag) words() int { return int(t & meta) }

// The block of a slot whose state is away is in its first word: the offset, the length
// of the state, and the class of the block's capacity. States have less than 2^24 words,
// and the blocks of a segment less than 2^32.
const (
	offShift = 32
	lenShift = 8
	lenMask  = 1<<24 - 1
	capMask  = 1<<lenShift - 1
)

// block returns the block of s, whose state is away.
func (s *slot) block() block {
	w := s.words[0]
	return block{off: int(w >> offShift), len: int(w >> lenShift & lenMask), cap: sizeOf(w & capMask)}
}

// point makes b the block of s.
func (s *slot) point(b block) {
	s.words[0] = uint64(b.off)<<offShift | uint64(b.len)<<lenShift | classOf(b.cap)
}

// resize sets the length of the state of s.
func (s *slot) resize(n int) {
	if s.tag.words() != away {
		s.tag = s.tag&^meta | tag(n)
		return
	}
	s.words[0] = s.words[0]&^(lenMask<<lenShift) | uint64(n)<<lenShift
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
