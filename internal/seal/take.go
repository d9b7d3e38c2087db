// Package seal defines the content of a receipt, its text, and the seal that callers can neither make
// nor change without the secret [Key]. The
// package is pure: it has no clock, no lock and no IO.
package seal

import (
	"encoding/base64"
	"encoding/binary"
	"slices"

	"github.com/weirhq/weir/window"
)

// Take is the content of a receipt. The zero value names no take. Takes are comparable.
type Take struct {
	// ID is the id of the take's holds.
	ID [12]byte

	// At is the instant of the take, and Wall the instant of its ops on calendar
	// windows. They can differ if a store in memory decided: calendar windows
	// follow the wall clock of the machine, which can be set. Later is how much later
	// the rules after a verdict were counted, if they had to wait for the others.
	At, Wall, Later window.Instant

	// Place is where the take was decided.
	Place Place

	// Counted has a digest for each rule in which the take was counted without a hold,
	// so that a cancel can give it back, followed by zeros. See [Key.Digest]. If a
	// take is counted in more rules than fit, a cancel gives nothing back in the rest.
	Counted [MostCounted]uint32

	// Seal is the seal of the other fields. See [Key.Seal].
	Seal [sealSize]byte
}

// MostCounted is the maximum number of rules without a hold in a receipt.
const MostCounted = 16

// Place is where a take was decided.
type Place uint8

const (
	Store Place = iota // the engine's store
	Local              // the memory of one process, while the store was unavailable
)

// MaxLen is the maximum size of a receipt's text, in bytes.
const MaxLen = 162

const (
	version  = 4 // in the high bits of the first byte; the place is in the low ones
	sealSize = 16
	size     = 2 + 12 + 7 + sealSize // and 4 bytes for each digest
	most     = size + 4*MostCounted + 2*binary.MaxVarintLen64

	// The second byte has the number of digests, and these flags.
	hasWall, hasLater = 1 << 6, 1 << 7
)

// IsZero reports whether r names no take.
func (r Take) IsZero() bool { return r.ID == [12]byte{} }

// String returns r as URL-safe text of at most [MaxLen] bytes, which [Parse]
// reads. It returns "" for the zero Take.
func (r Take) String() string {
	if r.IsZero() {
		return ""
	}
	return string(r.Append(make([]byte, 0, MaxLen)))
}

// Append appends the text of r, as [Take.String] returns it, to b.
func (r Take) Append(b []byte) []byte {
	if r.IsZero() {
		return b
	}
	var room [most]byte
	raw := append(r.appendFields(room[:0]), r.Seal[:]...)
	return base64.RawURLEncoding.AppendEncode(b, raw)
}

// appendFields appends all that the seal covers.
func (r *Take) appendFields(b []byte) []byte {
	n := 0
	for n < MostCounted && r.Counted[n] != 0 {
		n++
	}
	flags := byte(n)
	if r.Wall != r.At {
		flags |= hasWall
	}
	if r.Later != 0 {
		flags |= hasLater
	}
	b = append(b, version<<4|byte(r.Place), flags)
	b = append(b, r.ID[:]...)
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], uint64(r.At))
	b = append(b, at[1:]...)
	for _, digest := range r.Counted[:n] {
		b = binary.BigEndian.AppendUint32(b, digest)
	}
	if r.Wall != r.At {
		b = binary.AppendVarint(b, int64(r.Wall-r.At))
	}
	if r.Later != 0 {
		b = binary.AppendVarint(b, int64(r.Later))
	}
	return b
}

// Parse reports whether text is that of a receipt of this version, and returns its take. It
// checks only the format: it does not know the key of the seal.
func Parse(text string) (r Take, ok bool) {
	var in, again [MaxLen]byte
	var room [MaxLen * 3 / 4]byte
	if len(text) > MaxLen {
		return r, false
	}
	n, err := base64.RawURLEncoding.Decode(room[:], in[:copy(in[:], text)])
	if err != nil || n < size {
		return r, false
	}
	flags := room[1]
	digests := int(flags &^ (hasWall | hasLater))
	if digests > MostCounted || n < size+4*digests {
		return r, false
	}
	r.Place, r.ID, r.Seal = Place(room[0]&15), [12]byte(room[2:]), [sealSize]byte(room[n-sealSize:])
	at := [8]byte{}
	copy(at[1:], room[14:21])
	r.At = window.Instant(binary.BigEndian.Uint64(at[:]))
	raw := room[21 : n-sealSize]
	for i := range digests {
		r.Counted[i], raw = binary.BigEndian.Uint32(raw), raw[4:]
	}
	r.Wall = r.At
	if flags&hasWall > 0 {
		d, n := binary.Varint(raw)
		r.Wall, raw = r.Wall+window.Instant(d), raw[max(n, 0):]
	}
	later, _ := binary.Varint(raw) // 0 if there is none
	r.Later = window.Instant(later)
	const latest = window.Instant(window.MaxHits)
	if r.Place > Local || r.At > latest || min(r.Wall, r.Later) < 0 || max(r.Wall, r.Later) > latest {
		return r, false
	}
	return r, string(r.Append(again[:0])) == text // any other text is not a receipt
}

// Has reports whether digest, which is not 0, is one of those that r has of rules.
func (r *Take) Has(digest uint32) bool { return slices.Contains(r.Counted[:], digest) }
