package record

import (
	"encoding/binary"

	"github.com/weirhq/weir/store"
)

// A request in a chunk is
//
//	shape     uvarint, an index in the chunk's shapes
//	time      varint, microseconds since the request before, or since the chunk's base
//	verb      one byte, with the bits isFinal and hasHold
//	zeros     one byte: the leading zeros of its hash
//	hits      uvarint
//	hold      12 bytes, if hasHold is set
//	feedback  uvarint length, text; only of a refund
//	values    for each name of the shape, in its order: uvarint length, text

const (
	isFinal = 1 << 7
	hasHold = 1 << 6
)

// headSize is the most that all but the texts takes.
const headSize = 3*binary.MaxVarintLen64 + 2 + len(asked{}.hold) + binary.MaxVarintLen32

// asked is what a request asks, besides its attributes.
type asked struct {
	verb     store.Verb
	hits     int64 // 0: the default of the verb
	hold     [12]byte
	feedback string
	final    bool
}

// size returns how much of [chunkSize] c takes.
func (c *chunk) size() int { return len(c.data) + c.shaped }

// size returns at most how many bytes a request takes, with its shape.
func (s *shape) size(values []string, a *asked) int {
	n := headSize + s.bytes + len(a.feedback)
	for i := range s.names {
		n += binary.MaxVarintLen32 + len(values[i])
		if s.hidden[i] {
			n += hiddenSize
		}
	}
	return n
}

// hiddenSize is the length that the text of a hidden value may have.
const hiddenSize = 32

// add adds a request, which fits.
func (c *chunk) add(r *Recorder, of *shape, a *asked, values []string, now int64, zeros int) {
	at := len(c.shapes) - 1
	for at >= 0 && c.shapes[at] != of {
		at--
	}
	if at < 0 {
		at = len(c.shapes)
		c.shapes = append(c.shapes, of)
		c.shaped += of.bytes
	}
	b, before := c.data, c.last
	if len(b) == 0 {
		before = c.base
	}
	b = binary.AppendUvarint(b, uint64(at))
	b = binary.AppendVarint(b, now-before)
	verb := byte(a.verb)
	if a.final {
		verb |= isFinal
	}
	if a.hold != [12]byte{} {
		verb |= hasHold
	}
	b = append(b, verb, byte(zeros))
	b = binary.AppendUvarint(b, uint64(a.hits))
	if verb&hasHold != 0 {
		b = append(b, a.hold[:]...)
	}
	if a.verb == store.Refund {
		b = append(binary.AppendUvarint(b, uint64(len(a.feedback))), a.feedback...)
	}
	for i := range of.names {
		v := values[i]
		if of.hidden[i] && v != "" {
			v = r.hide(v)
		}
		b = append(binary.AppendUvarint(b, uint64(len(v))), v...)
	}
	c.data, c.last = b, now
}

// request is one that was kept.
type request struct {
	shape *shape
	time  int64
	zeros int
	asked
	// values are parts of the memory of the chunk.
	values [][]byte
}

// cursor reads the requests of chunks, one after the other.
type cursor struct {
	chunks []view
	at     int
	last   int64
	request
}

// view is a chunk as it was when a reader began.
type view struct {
	shapes []*shape
	data   []byte
	base   int64
}

// next reads the next request, and reports whether there is one.
func (c *cursor) next() bool {
	for len(c.chunks) > 0 && c.at == len(c.chunks[0].data) {
		c.chunks, c.at = c.chunks[1:], 0
	}
	if len(c.chunks) == 0 {
		return false
	}
	v := &c.chunks[0]
	if c.at == 0 {
		c.last = v.base
	}
	b := v.data[c.at:]
	uvarint := func() uint64 {
		x, n := binary.Uvarint(b)
		b = b[n:]
		return x
	}
	c.shape = v.shapes[uvarint()]
	delta, n := binary.Varint(b)
	b = b[n:]
	c.last += delta
	verb := b[0]
	c.time, c.zeros = c.last, int(b[1])
	c.asked = asked{verb: store.Verb(verb &^ (isFinal | hasHold)), final: verb&isFinal != 0}
	b = b[2:]
	c.hits = int64(uvarint())
	if verb&hasHold != 0 {
		b = b[copy(c.hold[:], b):]
	}
	if c.verb == store.Refund {
		n := uvarint()
		c.feedback, b = string(b[:n]), b[n:]
	}
	c.values = c.values[:0]
	for range c.shape.names {
		n := uvarint()
		c.values = append(c.values, b[:n:n])
		b = b[n:]
	}
	c.at = len(v.data) - len(b)
	return true
}
