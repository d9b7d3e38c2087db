package grpcserver

import (
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
)

// Count returns how many messages are in the field of b with a number. Front ends ask
// before a large message is decoded, because an empty message within it takes two bytes,
// and many times as many when it is decoded.
func Count(b []byte, number protowire.Number) (n int) {
	for range Submessages(b, number) {
		n++
	}
	return n
}

// Submessages iterates over the messages in the field of b with a number, up to the place
// where b is no message.
func Submessages(b []byte, number protowire.Number) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for value := range fields(b, number, protowire.BytesType) {
			if text, _ := protowire.ConsumeBytes(value); !yield(text) {
				return
			}
		}
	}
}

// Uint returns the number in a field of b, or 0.
func Uint(b []byte, number protowire.Number) (n uint64) {
	for value := range fields(b, number, protowire.VarintType) {
		n, _ = protowire.ConsumeVarint(value)
	}
	return n
}

// fields iterates over the values of the fields of b that have a number and a type.
func fields(b []byte, number protowire.Number, kind protowire.Type) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			n, k, size := protowire.ConsumeTag(b)
			if size < 0 {
				return
			}
			b = b[size:]
			if size = protowire.ConsumeFieldValue(n, k, b); size < 0 || n == number && k == kind && !yield(b[:size]) {
				return
			}
			b = b[size:]
		}
	}
}
