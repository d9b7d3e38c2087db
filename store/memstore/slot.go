package memstore

// slot holds a key and its state: of up to three words in the slot itself, so
// that one access to memory finds both. That is every state of a fixed and a
// calendar window and of a bucket, and up to three hits of a sliding window.
// Larger states are in a block of the segment's arena; the first word then says
// which.
type slot struct {
	tag   tag
	words [inline]uint64
}

// tag is what a slot holds: 61 bits of the key's fingerprint, whose other three
// chose the shard (with fewer than eight shards, not all of them are compared),
// and below them the number of words of the state that are in the slot. The zero
// tag is a free slot.
type tag uint64

const free tag = 0

const (
	inline = 3
	away   = 7 // in place of the number of words: they are in a block
	meta   = 7 // the bits of a tag that are not the fingerprint's
)

func tagOf(f fingerprint, words int) tag { return tag(f)<<3 | tag(words) }

// is says that t is of the key f.
func (t tag) is(f fingerprint) bool { return t != free && t&^meta == tag(f)<<3 }

// key is the fingerprint, without the bits that chose the shard.
func (t tag) key() fingerprint { return fingerprint(t >> 3) }

func (t tag) words() int { return int(t & meta) }

func (t tag) with(words int) tag { return t&^meta | tag(words) }

// block is where a state is in a segment's arena, and how many words it has of
// those that it may have.
type block struct{ off, len, cap int }

// block is the block of a slot whose state is away.
func (s *slot) block() block {
	return block{off: int(s.words[0]), len: int(s.words[1]), cap: int(s.words[2])}
}

// point makes b the block of s.
func (s *slot) point(b block) {
	s.words = [inline]uint64{uint64(b.off), uint64(b.len), uint64(b.cap)}
}
