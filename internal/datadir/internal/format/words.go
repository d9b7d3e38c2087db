package format

import (
	"encoding/binary"
	"errors"
)

// A state's words are instants, small numbers, and marks with random bits. A word is
// written as a uvarint whose two lowest bits say what the others are: the word itself
// if it is small, its distance from the last instant before it if that is short, or
// nothing: then the word follows in 8 bytes. The first instant's distance is from the
// base.

const (
	asItself   = 0
	asDistance = 1
	asBytes    = 2

	smallWord = 1 << 40 // in microseconds since 1970 twelve days; instants are larger
	near      = 1 << 54 // distances that take no more than 8 bytes
)

var errPayload = errors.New("malformed payload")

// appendWords appends words.
func appendWords(b []byte, base int64, words []uint64) []byte {
	last := uint64(base)
	for _, w := range words {
		if w < smallWord {
			b = binary.AppendUvarint(b, w<<2|asItself)
			continue
		}
		d := int64(w - last)
		if z := uint64(d<<1) ^ uint64(d>>63); z < near {
			b = binary.AppendUvarint(b, z<<2|asDistance)
			last = w
			continue
		}
		b = append(b, asBytes)
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// readWords appends n words to words.
func readWords(b []byte, base int64, n uint64, words []uint64) (out []uint64, rest []byte, err error) {
	last := uint64(base)
	for range n {
		v, size := binary.Uvarint(b)
		if size <= 0 {
			return nil, nil, errPayload
		}
		b = b[size:]
		switch v & 3 {
		case asItself:
			words = append(words, v>>2)
		case asDistance:
			z := v >> 2
			last += z>>1 ^ -(z & 1)
			words = append(words, last)
		case asBytes:
			if len(b) < 8 {
				return nil, nil, errPayload
			}
			words = append(words, binary.LittleEndian.Uint64(b))
			b = b[8:]
		default:
			return nil, nil, errPayload
		}
	}
	return words, b, nil
}
