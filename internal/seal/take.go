// Package seal defines what a receipt says about the take that it names, its text, and
// the seal that callers can neither make nor change without the secret [Key]. The
// package is pure: it has no clock, no lock and no IO.
package seal

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/weirhq/weir/window"
)

// Take is the content of a receipt. The zero value names no take. Takes are comparable.
type Take struct {
	// ID is the id of the take's holds.
	ID [12]byte

	// At is the instant of the take, and Wall the instant of its ops on calendar
	// windows. They can differ if a store in memory decided: calendar windows
	// follow the wall clock of the machine, which can be set.
	At, Wall window.Instant

	// Place is where the take was decided.
	Place Place

	// Digest identifies what the take counted without a hold, so that a cancel
	// can give it back. See [Key.Digest]. 0 means that there is nothing to give back.
	Digest uint64

	// Seal is the seal of the other fields. See [Key.Seal].
	Seal [sealSize]byte
}

// Place is where a take was decided.
type Place uint8

const (
	Store Place = iota // the engine's store
	Local              // the memory of one process, while the store was out of reach
)

// MaxLen is the most bytes of a receipt's text.
const MaxLen = 72

const (
	version  = 3 // in the high bits of the first byte; the place is in the low ones
	sealSize = 16
	size     = 1 + 12 + 7 + 8 + sealSize

	// Receipts of the version before had a seal of 64 bits that is no more valid.
	oldVersion = 2
	oldSize    = size - 8
)

// strict refuses text that another text stands for.
var strict = base64.RawURLEncoding.Strict()

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
	var room [size + binary.MaxVarintLen64]byte
	raw := append(r.appendFields(room[:0]), r.Seal[:]...)
	return base64.RawURLEncoding.AppendEncode(b, raw)
}

// appendFields appends all that the seal covers.
func (r *Take) appendFields(b []byte) []byte {
	b = append(b, version<<4|byte(r.Place))
	b = append(b, r.ID[:]...)
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], uint64(r.At))
	b = append(b, at[1:]...)
	b = binary.BigEndian.AppendUint64(b, r.Digest)
	if r.Wall != r.At {
		b = binary.AppendVarint(b, int64(r.Wall-r.At))
	}
	return b
}

// Parse reports whether text is that of a receipt, and returns its take. It checks only
// the format: it does not know the key of the seal. A receipt of the version before is
// returned without a seal: it is a receipt, but no key has sealed it.
func Parse(text string) (r Take, ok bool) {
	var in, again [MaxLen]byte
	var room [MaxLen * 3 / 4]byte
	if len(text) > MaxLen {
		return r, false
	}
	n, err := strict.Decode(room[:], in[:copy(in[:], text)])
	raw := room[:n]
	if err != nil || len(raw) < oldSize || Place(raw[0]&15) > Local {
		return r, false
	}
	r.ID = [12]byte(raw[1:13])
	switch {
	case raw[0]>>4 == oldVersion:
		return r, len(raw) <= oldSize+binary.MaxVarintLen64 && !r.IsZero()
	case raw[0]>>4 != version || len(raw) < size:
		return r, false
	}
	r.Place = Place(raw[0] & 15)
	at := [8]byte{}
	copy(at[1:], raw[13:20])
	r.At = window.Instant(binary.BigEndian.Uint64(at[:]))
	r.Digest = binary.BigEndian.Uint64(raw[20:28])
	r.Wall = r.At
	if wall := raw[28 : len(raw)-sealSize]; len(wall) > 0 {
		d, n := binary.Varint(wall)
		if n != len(wall) || d == 0 {
			return r, false
		}
		r.Wall += window.Instant(d)
	}
	r.Seal = [sealSize]byte(raw[len(raw)-sealSize:])
	const most = window.Instant(window.MaxHits)
	if r.IsZero() || r.At > most || r.Wall < 0 || r.Wall > most {
		return r, false
	}
	return r, string(r.Append(again[:0])) == text
}
