package format

import (
	"crypto/sha256"
	"encoding/binary"
)

// A section is its kind in one byte, the length of what follows in four, and its
// content.
const (
	sectionSize = 5

	kindSpace  = 1
	kindKeys   = 2
	kindBlob   = 3
	kindHeader = 4
	kindNames  = 5
)

// SpaceID stands for a space in the files: part of a hash of its namespace and ID.
type SpaceID uint64

// IDOf returns the SpaceID of a space.
func IDOf(namespace, id string) SpaceID {
	b := binary.AppendUvarint(nil, uint64(len(namespace)))
	sum := sha256.Sum256(append(append(b, namespace...), id...))
	return SpaceID(binary.LittleEndian.Uint64(sum[:]))
}

// Space is a space with a limit of its keys, as package limittext writes it.
type Space struct {
	Namespace, ID, Name string
	MaxKeys             int64
	Limit               []byte
}

// begin appends the beginning of a section, and returns where its length is.
func begin(b []byte, kind byte) ([]byte, int) {
	return append(b, kind, 0, 0, 0, 0), len(b) + 1
}

// end sets the length of the section that began at at.
func end(b []byte, at int) []byte {
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// AppendSpace appends s as a section.
func AppendSpace(b []byte, s *Space) []byte {
	b, at := begin(b, kindSpace)
	for _, text := range [...]string{s.Namespace, s.ID, s.Name, string(s.Limit)} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	b = binary.AppendVarint(b, s.MaxKeys)
	return end(b, at)
}

// BeginKeys appends the beginning of a section of keys. The caller appends keys by
// [AppendKey] and calls [EndKeys] with at.
func BeginKeys(b []byte) (out []byte, at int) {
	b, at = begin(b, kindKeys)
	return append(b, 0, 0, 0, 0, 0, 0, 0, 0), at
}

// EndKeys ends a section of keys of one space. A section without keys is taken back.
func EndKeys(b []byte, at int, id SpaceID) []byte {
	if len(b) == at+12 {
		return b[:at-1]
	}
	binary.LittleEndian.PutUint64(b[at+4:], uint64(id))
	return end(b, at)
}

// AppendKey appends a key with its state, which is empty for a key that was dropped.
// base is the frame's Base.
func AppendKey(b []byte, base int64, key uint64, state []uint64) []byte {
	b = binary.LittleEndian.AppendUint64(b, key)
	b = binary.AppendUvarint(b, uint64(len(state)))
	return appendWords(b, base, state)
}

// AppendName appends the name of a key, in words, to what [AppendNames] appends.
func AppendName(b []byte, key uint64, words []uint64) []byte {
	b = binary.LittleEndian.AppendUint64(b, key)
	b = binary.AppendUvarint(b, uint64(len(words)))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// AppendNames appends the names of keys of one space as a section.
func AppendNames(b []byte, id SpaceID, names []byte) []byte {
	b, at := begin(b, kindNames)
	b = binary.LittleEndian.AppendUint64(b, uint64(id))
	return end(append(b, names...), at)
}

// AppendBlob appends a blob: data of the program under a name, which replaces the blob
// of that name.
func AppendBlob(b []byte, name string, data []byte) []byte {
	b, at := begin(b, kindBlob)
	b = binary.AppendUvarint(b, uint64(len(name)))
	b = append(b, name...)
	return end(append(b, data...), at)
}

// AppendHeaderCopy appends the header of the file as a section, for readers of a file that has
// lost its beginning.
func AppendHeaderCopy(b []byte, h *Header) []byte {
	b, at := begin(b, kindHeader)
	return end(appendCopy(b, h), at)
}

// Visitor is called for the parts of a payload. A nil function skips its part.
type Visitor struct {
	Space func(SpaceID, Space)

	// Keys is called before the keys of a space, or their names, and reports whether
	// they are wanted. Key is called for each of them, and Name for each name; they must
	// not keep the words. Name can be nil.
	Keys func(SpaceID) bool
	Key  func(key uint64, state []uint64)
	Name func(key uint64, words []uint64)

	// Blob must not keep data.
	Blob func(name string, data []byte)

	Header func(Header)
}

// Read reads a payload: first its spaces, and then all else. base is the frame's
// Base. It returns an error where the payload is malformed; what came before
// has been visited.
func Read(payload []byte, base int64, v *Visitor) error {
	for _, spaces := range [...]bool{true, false} {
		for b := payload; len(b) > 0; {
			if len(b) < sectionSize {
				return errPayload
			}
			kind, length := b[0], uint64(binary.LittleEndian.Uint32(b[1:]))
			if b = b[sectionSize:]; uint64(len(b)) < length {
				return errPayload
			}
			if content := b[:length]; spaces == (kind == kindSpace) {
				if err := section(kind, content, base, v); err != nil {
					return err
				}
			}
			b = b[length:]
		}
	}
	return nil
}

// section reads one section. One of an unknown kind is skipped.
func section(kind byte, b []byte, base int64, v *Visitor) error {
	switch kind {
	case kindSpace:
		return space(b, v)
	case kindKeys:
		return keys(b, base, v)
	case kindNames:
		return keyNames(b, v)
	case kindBlob:
		name, data, ok := text(b)
		if !ok {
			return errPayload
		}
		if v.Blob != nil {
			v.Blob(name, data)
		}
	case kindHeader:
		h, err := ReadHeader(b)
		if err != nil {
			return errPayload
		}
		if v.Header != nil {
			v.Header(h)
		}
	}
	return nil
}

func space(b []byte, v *Visitor) error {
	var texts [4]string
	for i := range texts {
		var ok bool
		if texts[i], b, ok = text(b); !ok {
			return errPayload
		}
	}
	most, n := binary.Varint(b)
	if n <= 0 {
		return errPayload
	}
	if v.Space != nil {
		v.Space(IDOf(texts[0], texts[1]), Space{texts[0], texts[1], texts[2], most, []byte(texts[3])})
	}
	return nil
}

// text reads a text behind its length.
func text(b []byte) (s string, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return "", nil, false
	}
	b = b[size:]
	return string(b[:n]), b[n:], true
}

func keyNames(b []byte, v *Visitor) error {
	if len(b) < 8 {
		return errPayload
	}
	if v.Name == nil || !v.Keys(SpaceID(binary.LittleEndian.Uint64(b))) {
		return nil
	}
	var words []uint64
	for b = b[8:]; len(b) > 0; {
		if len(b) < 9 {
			return errPayload
		}
		key := binary.LittleEndian.Uint64(b)
		n, size := binary.Uvarint(b[8:])
		if size <= 0 {
			return errPayload
		}
		if b = b[8+size:]; n > uint64(len(b)/8) {
			return errPayload
		}
		words = words[:0]
		for range n {
			words = append(words, binary.LittleEndian.Uint64(b))
			b = b[8:]
		}
		v.Name(key, words)
	}
	return nil
}

func keys(b []byte, base int64, v *Visitor) error {
	if len(b) < 8 {
		return errPayload
	}
	if v.Keys == nil || !v.Keys(SpaceID(binary.LittleEndian.Uint64(b))) {
		return nil
	}
	var room [128]uint64
	words := room[:0]
	for b = b[8:]; len(b) > 0; {
		if len(b) < 9 {
			return errPayload
		}
		key := binary.LittleEndian.Uint64(b)
		n, size := binary.Uvarint(b[8:])
		if size <= 0 || n > uint64(len(b)) {
			return errPayload
		}
		var err error
		if words, b, err = readWords(b[8+size:], base, n, words[:0]); err != nil {
			return err
		}
		v.Key(key, words)
	}
	return nil
}
