package report

import (
	"encoding/binary"
	"time"

	"github.com/weirhq/weir/internal/limittext"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// The layout of an entry as a blob: a version, and then numbers as varints and texts
// after their lengths, in the order of encode.
const layout = 2

// firstLayout lacks what holds have had since.
const firstLayout = 1

// maxLimits is the maximum number of texts of limits in the cache.
const maxLimits = 1000

// text returns limit as text.
func (b *saver) text(limit *window.Compiled) []byte {
	text, ok := b.limits[limit]
	if !ok {
		if len(b.limits) >= maxLimits {
			clear(b.limits)
		}
		text, _ = limittext.Append(nil, *limit.Limit) // a Limit has nothing that JSON cannot express
		b.limits[limit] = text
	}
	return text
}

// encode returns e as a blob.
func (b *saver) encode(e *entry) []byte {
	limit := b.text(e.limit)
	out := append(make([]byte, 0, 64+len(limit)+8*len(e.state)), layout)
	for _, text := range [...]string{
		e.id.namespace, e.id.space, e.space.Name(), string(limit), e.together, e.id.key, e.id.member,
	} {
		out = binary.AppendUvarint(out, uint64(len(text)))
		out = append(out, text...)
	}
	out = binary.AppendVarint(out, e.space.MaxKeys())
	out = binary.AppendVarint(out, e.hits)
	out = binary.AppendUvarint(out, uint64(len(e.state)))
	for _, w := range e.state {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	out = binary.AppendUvarint(out, uint64(len(e.holds)))
	for _, h := range e.holds {
		out = append(out, h.ID[:]...)
		out = binary.AppendVarint(out, int64(h.At))
		out = binary.AppendVarint(out, int64(h.End))
		out = binary.AppendVarint(out, h.n)
		out = binary.AppendVarint(out, h.final)
		out = append(out, h.flags())
	}
	var holding []byte // none: the same as limit
	if len(e.holds) > 0 && e.holding != e.limit {
		holding = b.text(e.holding)
	}
	out = binary.AppendUvarint(out, uint64(len(holding)))
	return append(out, holding...)
}

// decoder reads blobs, which share limits.
type decoder map[string]*window.Compiled

// decode returns the entry of a blob, or nil if this program cannot read it.
func (d decoder) decode(data []byte) *entry {
	if len(data) == 0 || data[0] < firstLayout || data[0] > layout {
		return nil
	}
	r := reader{data[1:], true}
	namespace, space, name, limit := r.text(), r.text(), r.text(), r.text()
	e := &entry{together: r.text()}
	e.id = id{namespace, space, r.text(), r.text()}
	e.space = store.NewSpace(namespace, space, name, r.varint())
	e.hits = r.varint()
	for range r.count(8) {
		e.state = append(e.state, binary.LittleEndian.Uint64(r.bytes(8)))
	}
	for range r.count(len(window.Hold{}.ID) + 3) {
		var h held
		copy(h.ID[:], r.bytes(len(h.ID)))
		h.At, h.End, h.n = window.Instant(r.varint()), window.Instant(r.varint()), r.varint()
		if data[0] > firstLayout {
			h.final = r.varint()
			h.setFlags(r.bytes(1)[0])
		}
		e.holds = append(e.holds, h)
	}
	holding := ""
	if data[0] > firstLayout {
		holding = r.text()
	}
	if !r.ok || len(r.rest) > 0 || e.hits < 0 || e.hits > window.MaxHits {
		return nil
	}
	if e.limit = d.limit(limit); holding == "" {
		e.holding = e.limit
	} else {
		e.holding = d.limit(holding)
	}
	if e.limit == nil || e.holding == nil {
		return nil
	}
	return e
}

// limit returns the limit of a text, or nil if this program cannot read it.
func (d decoder) limit(text string) *window.Compiled {
	limit, ok := d[text]
	if !ok {
		if l, err := limittext.Read([]byte(text), time.LoadLocation); err == nil {
			limit, _ = window.Compile(l)
		}
		d[text] = limit
	}
	return limit
}

// flags returns what of h is true, in bits.
func (h *held) flags() (bits byte) {
	for i, is := range [...]bool{h.there, h.renewed, h.over, h.elsewhere, h.closed, h.unproven} {
		if is {
			bits |= 1 << i
		}
	}
	return bits
}

func (h *held) setFlags(bits byte) {
	h.there, h.renewed, h.over = bits&1 != 0, bits&2 != 0, bits&4 != 0
	h.elsewhere, h.closed, h.unproven = bits&8 != 0, bits&16 != 0, bits&32 != 0
}

// reader reads a blob. After an error ok is false, and all that it reads is zero.
type reader struct {
	rest []byte
	ok   bool
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.rest) {
		r.rest, r.ok = nil, false
		return make([]byte, n)
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) text() string {
	n := r.count(1)
	return string(r.bytes(n))
}

// count reads how many items of at least size bytes follow.
func (r *reader) count(size int) int {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > uint64(len(r.rest)-n)/uint64(size) {
		r.rest, r.ok = nil, false
		return 0
	}
	r.rest = r.rest[n:]
	return int(v)
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.rest, r.ok = nil, false
		return 0
	}
	r.rest = r.rest[n:]
	return v
}
