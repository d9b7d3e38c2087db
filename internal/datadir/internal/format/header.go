// Package format is the layout of the files in a data directory: pure functions
// between bytes and values. Package datadir reads and writes the files.
//
//	file    ──► header (twice) ──► frames
//	frame   ──► frame header, payload
//	payload ──► sections: a space, or keys of one space, or a blob, or a copy of the header
//
// All numbers of a fixed size are little-endian. Each header and each payload has its
// own CRC-32 (Castagnoli). A reader skips bytes that are not a frame and searches for the next
// frame of the same file ([Next]), so a damaged byte loses one frame.
package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Version is the version of the layout, with the meaning of the states' words. A
// reader refuses directories of a later version.
const Version = 1

// HeaderSize is the size of a file's header, with its copy.
const HeaderSize = 2 * headerCopy

const (
	headerCopy = 256
	fileMagic  = "weirdata"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is what a file begins with. All files of a directory have the same Secret.
type Header struct {
	Version uint32
	File    uint64 // the number of the file, from 1 on

	// Secret is the key of the fingerprints.
	Secret [32]byte

	// Receipts are the secret of receipts and the one before it, which is valid
	// until Until, in microseconds of Unix time. Until is 0 if there is none. They
	// are those of the file with the highest number.
	Receipts [2][16]byte
	Until    int64
}

// ErrHeader is the error of a file without a valid header.
var ErrHeader = errors.New("no valid header")

// NewerError is the error of a file of a later version.
type NewerError struct{ Version uint32 }

func (e *NewerError) Error() string {
	return fmt.Sprintf("written by a later version of weir: layout %d, this program reads up to %d", e.Version, Version)
}

// AppendHeader appends h, whose Version is ignored, twice to b.
func AppendHeader(b []byte, h *Header) []byte { return appendCopy(appendCopy(b, h), h) }

// appendCopy appends h once.
func appendCopy(b []byte, h *Header) []byte {
	one := make([]byte, 0, headerCopy)
	one = append(one, fileMagic...)
	one = binary.LittleEndian.AppendUint32(one, Version)
	one = binary.LittleEndian.AppendUint64(one, h.File)
	one = append(one, h.Secret[:]...)
	one = append(one, h.Receipts[0][:]...)
	one = append(one, make([]byte, 16)...) // unused
	one = append(one, h.Receipts[1][:]...)
	one = binary.LittleEndian.AppendUint64(one, uint64(h.Until))
	one = one[:headerCopy-4]
	one = binary.LittleEndian.AppendUint32(one, crc32.Checksum(one, castagnoli))
	return append(b, one...)
}

// ReadHeader reads the header at the beginning of b. One of its two copies must be
// whole. The error is [ErrHeader] or a [*NewerError].
func ReadHeader(b []byte) (h Header, err error) {
	for at := 0; at < HeaderSize; at += headerCopy {
		if len(b) < at+headerCopy {
			break
		}
		one := b[at : at+headerCopy]
		sum := binary.LittleEndian.Uint32(one[headerCopy-4:])
		if string(one[:8]) != fileMagic || crc32.Checksum(one[:headerCopy-4], castagnoli) != sum {
			continue
		}
		h.Version = binary.LittleEndian.Uint32(one[8:])
		if h.Version > Version {
			return h, &NewerError{h.Version}
		}
		h.File = binary.LittleEndian.Uint64(one[12:])
		copy(h.Secret[:], one[20:])
		copy(h.Receipts[0][:], one[52:])
		copy(h.Receipts[1][:], one[84:])
		h.Until = int64(binary.LittleEndian.Uint64(one[100:]))
		return h, nil
	}
	return h, ErrHeader
}
