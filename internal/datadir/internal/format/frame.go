package format

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
)

// FrameSize is the size of a frame's header.
const FrameSize = 92

const frameMagic = "wfr\x01"

// Flags of a frame.
const (
	// Whole: this file has all keys up to here, so older files are not needed.
	Whole = 1 << iota
	// End: the program ended in order, and has nothing left to write.
	End
)

// Frame is the header of a frame.
type Frame struct {
	Flags uint32
	File  uint64 // the number of the file
	Seq   uint64 // the number of the frame in the file, from 1 on

	// The store's clocks after the last change in the frame, see memstore.Times.
	Steady, Wall, SteadyFloor, WallFloor int64

	// Uptime is the time since the machine was started, in microseconds, at
	// Steady, and Boot stands for that start. Both are 0 if they are not known.
	Uptime int64
	Boot   uint64

	// Base is what the instants in the payload are written relative to; see
	// [AppendKey].
	Base int64

	Length   int // of the payload, which follows
	checksum uint32
}

// Seal writes the header of f into the first [FrameSize] bytes of b, whose other
// bytes are the payload. It sets f.Length.
func Seal(b []byte, f *Frame) {
	payload := b[FrameSize:]
	f.Length, f.checksum = len(payload), crc32.Checksum(payload, castagnoli)
	h := append(b[:0], frameMagic...)
	h = binary.LittleEndian.AppendUint32(h, f.Flags)
	for _, n := range [...]uint64{
		f.File, f.Seq, uint64(f.Steady), uint64(f.Wall), uint64(f.SteadyFloor), uint64(f.WallFloor), uint64(f.Uptime), f.Boot, uint64(f.Base),
	} {
		h = binary.LittleEndian.AppendUint64(h, n)
	}
	h = binary.LittleEndian.AppendUint32(h, uint32(f.Length))
	h = binary.LittleEndian.AppendUint32(h, f.checksum)
	binary.LittleEndian.AppendUint32(h, crc32.Checksum(h, castagnoli))
}

// ReadFrame reads the header at the beginning of b. It reports false when b does not
// begin with a whole header.
func ReadFrame(b []byte) (f Frame, ok bool) {
	if len(b) < FrameSize || string(b[:4]) != frameMagic ||
		crc32.Checksum(b[:FrameSize-4], castagnoli) != binary.LittleEndian.Uint32(b[FrameSize-4:]) {
		return f, false
	}
	f.Flags = binary.LittleEndian.Uint32(b[4:])
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8+8*i:]) }
	f.File, f.Seq = word(0), word(1)
	f.Steady, f.Wall, f.SteadyFloor, f.WallFloor = int64(word(2)), int64(word(3)), int64(word(4)), int64(word(5))
	f.Uptime, f.Boot, f.Base = int64(word(6)), word(7), int64(word(8))
	length := binary.LittleEndian.Uint32(b[80:])
	f.checksum = binary.LittleEndian.Uint32(b[84:])
	if length > math.MaxInt32-FrameSize {
		return f, false
	}
	f.Length = int(length)
	return f, true
}

// Fits reports whether payload is that of f.
func (f *Frame) Fits(payload []byte) bool {
	return len(payload) == f.Length && crc32.Checksum(payload, castagnoli) == f.checksum
}

// Next returns the offset of the next bytes in b, from offset 1 on, that may be a
// frame, or -1.
func Next(b []byte) int {
	if len(b) == 0 {
		return -1
	}
	i := bytes.Index(b[1:], []byte(frameMagic))
	if i < 0 {
		return -1
	}
	return i + 1
}
