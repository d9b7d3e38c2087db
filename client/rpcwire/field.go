package rpcwire

import (
	"errors"
	"math"
	"time"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirhq/weir/window"
)

// errMessage is the error for bytes that are not the message.
var errMessage = errors.New("not the message that was announced")

// field is one field of a message: a number or bytes.
type field struct {
	number protowire.Number
	kind   protowire.Type
	n      uint64
	bytes  []byte
}

// next reads the next field of b into f, and returns what follows it. Fields of other
// types than numbers and bytes have neither.
func next(b []byte, f *field) (rest []byte, err error) {
	// Most fields have a tag of one byte, and a number or a length of one byte. To read
	// these here takes half of the time.
	if len(b) >= 2 && b[0]-8 < 0x78 && b[1] < 0x80 {
		f.number, f.kind = protowire.Number(b[0]>>3), protowire.Type(b[0]&7)
		switch f.kind {
		case protowire.VarintType:
			f.n = uint64(b[1])
			return b[2:], nil
		case protowire.BytesType:
			if size := int(b[1]) + 2; size <= len(b) {
				f.bytes = b[2:size]
				return b[size:], nil
			}
		}
	}
	return nextAny(b, f)
}

// nextAny is next for fields of all sizes.
func nextAny(b []byte, f *field) (rest []byte, err error) {
	number, kind, size := protowire.ConsumeTag(b)
	if size < 0 || number > protowire.MaxValidNumber {
		return nil, errMessage
	}
	b = b[size:]
	*f = field{number: number, kind: kind}
	switch kind {
	case protowire.VarintType:
		f.n, size = protowire.ConsumeVarint(b)
	case protowire.BytesType:
		f.bytes, size = protowire.ConsumeBytes(b)
	default:
		size = protowire.ConsumeFieldValue(number, kind, b)
	}
	if size < 0 {
		return nil, errMessage
	}
	return b[size:], nil
}

// isNumber and isBytes report whether f has the type that its message states. A field
// of another type is an unknown one.
func (f *field) isNumber() bool { return f.kind == protowire.VarintType }
func (f *field) isBytes() bool  { return f.kind == protowire.BytesType }

// view returns b as a string that shares its memory.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// duration reads a google.protobuf.Duration. -1 seconds is [window.Never]. One that is
// too long is the longest one.
func duration(b []byte) (time.Duration, error) {
	const most = int64(math.MaxInt64/time.Second) - 3 // more nanoseconds than fit an int32 are 3 s
	switch s, n, err := pair(b); {
	case s == -1 && n == 0:
		return window.Never, err
	case s > most:
		return math.MaxInt64, err
	case s < -most:
		return math.MinInt64, err
	default:
		return time.Duration(s)*time.Second + time.Duration(n), err
	}
}

// instant reads a google.protobuf.Timestamp.
func instant(b []byte) (window.Instant, error) {
	s, n, err := pair(b)
	return window.Instant(s*1e6 + n/1e3), err
}

// pair reads the two numbers of a duration or a timestamp.
func pair(b []byte) (seconds, nanos int64, err error) {
	var f field
	for len(b) > 0 {
		if b, err = next(b, &f); err != nil {
			return 0, 0, err
		}
		switch {
		case f.number == 1 && f.isNumber():
			seconds = int64(f.n) //nolint:gosec // two's complement
		case f.number == 2 && f.isNumber():
			nanos = int64(int32(f.n)) //nolint:gosec // as package proto cuts it
		}
	}
	return seconds, nanos, nil
}

// appendText appends a field with text, unless it is empty.
func appendText(b []byte, number protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), text)
}

// appendInt appends a field with a number, unless it is 0.
func appendInt(b []byte, number protowire.Number, n int64) []byte {
	if n == 0 {
		return b
	}
	return appendAny(b, number, n)
}

// appendAny appends a field with a number.
func appendAny(b []byte, number protowire.Number, n int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(n)) //nolint:gosec // two's complement
}

// appendBool appends a field that is true.
func appendBool(b []byte, number protowire.Number, is bool) []byte {
	if !is {
		return b
	}
	return append(protowire.AppendTag(b, number, protowire.VarintType), 1)
}

// appendDuration appends a field with a duration, unless it is 0.
func appendDuration(b []byte, number protowire.Number, d time.Duration) []byte {
	switch d {
	case 0:
		return b
	case window.Never:
		return appendPair(b, number, -1, 0)
	}
	return appendPair(b, number, int64(d/time.Second), int64(d%time.Second))
}

// appendInstant appends a field with an instant, unless it is 0.
func appendInstant(b []byte, number protowire.Number, at window.Instant) []byte {
	if at == 0 {
		return b
	}
	return appendPair(b, number, int64(at/1e6), int64(at%1e6*1e3))
}

func appendPair(b []byte, number protowire.Number, seconds, nanos int64) []byte {
	b, start := open(b, number)
	b = appendInt(b, 1, seconds)
	return shut(appendInt(b, 2, nanos), start)
}

// open begins a field with a message, which is then appended to b; shut ends it.
func open(b []byte, number protowire.Number) (_ []byte, start int) {
	b = append(protowire.AppendTag(b, number, protowire.BytesType), 0)
	return b, len(b)
}

// shut writes the size of the message that begins at start in front of it.
func shut(b []byte, start int) []byte {
	size := uint64(len(b) - start)
	if size < 1<<7 {
		b[start-1] = byte(size)
		return b
	}
	more := protowire.SizeVarint(size) - 1
	var room [10]byte
	b = append(b, room[:more]...)
	copy(b[start+more:], b[start:len(b)-more])
	protowire.AppendVarint(b[:start-1], size)
	return b
}
