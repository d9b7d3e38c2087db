package envoyrls

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// AppendMessage implements [grpcserver.Message]. What answers rarely carry it leaves to
// package proto.
func (x *exchange) AppendMessage(b []byte) ([]byte, error) {
	b = appendNumber(b, 1, uint64(x.code)) //nolint:gosec // codes are small
	for i := range x.answers {
		s := &x.answers[i].status
		size, limit := s.size()
		b = appendSize(b, 2, size)
		b = s.append(b, limit)
	}
	if rest := &x.rest; rest.DynamicMetadata != nil || rest.ResponseHeadersToAdd != nil || rest.RequestHeadersToAdd != nil || rest.RawBody != nil {
		return proto.MarshalOptions{}.MarshalAppend(b, rest)
	}
	return b, nil
}

// size returns the size of s and that of its current limit.
func (s *status) size() (size, limit int) {
	size = sizeNumber(uint64(s.code)) + sizeNumber(uint64(s.remaining)) //nolint:gosec // codes are small
	if s.limited {
		limit = sizeNumber(uint64(s.quota)) + sizeNumber(uint64(s.unit)) //nolint:gosec // units are small
		if s.name != "" {
			limit += sizeField(len(s.name))
		}
		if s.times > 0 {
			limit += sizeField(sizeNumber(uint64(s.times)))
		}
		size += sizeField(limit)
	}
	if s.reset >= 0 {
		size += sizeField(sizeNumber(uint64(s.reset)))
	}
	return size, limit
}

// append appends s, whose current limit takes limit bytes.
func (s *status) append(b []byte, limit int) []byte {
	b = appendNumber(b, 1, uint64(s.code)) //nolint:gosec // codes are small
	if s.limited {
		b = appendSize(b, 2, limit)
		b = appendNumber(b, 1, uint64(s.quota))
		b = appendNumber(b, 2, uint64(s.unit)) //nolint:gosec // units are small
		if s.name != "" {
			b = append(appendSize(b, 3, len(s.name)), s.name...)
		}
		if s.times > 0 {
			b = appendSize(b, 4, sizeNumber(uint64(s.times)))
			b = appendNumber(b, 1, uint64(s.times))
		}
	}
	b = appendNumber(b, 3, uint64(s.remaining))
	if s.reset >= 0 {
		b = appendSize(b, 4, sizeNumber(uint64(s.reset)))
		b = appendNumber(b, 1, uint64(s.reset))
	}
	return b
}

// appendNumber appends a field below 16 with a number, or nothing for 0.
func appendNumber(b []byte, field byte, n uint64) []byte {
	switch {
	case n == 0:
		return b
	case n < 0x80:
		return append(b, field<<3|asNumber, byte(n))
	}
	return protowire.AppendVarint(append(b, field<<3|asNumber), n)
}

// appendSize appends the start of a field below 16 with size bytes.
func appendSize(b []byte, field byte, size int) []byte {
	if size < 0x80 {
		return append(b, field<<3|asBytes, byte(size))
	}
	return protowire.AppendVarint(append(b, field<<3|asBytes), uint64(size)) //nolint:gosec // not negative
}

// sizeNumber returns the size of what appendNumber appends.
func sizeNumber(n uint64) int {
	switch {
	case n == 0:
		return 0
	case n < 0x80:
		return 2
	}
	return 1 + protowire.SizeVarint(n)
}

// sizeField returns the size of a field below 16 with size bytes.
func sizeField(size int) int {
	if size < 0x80 {
		return 2 + size
	}
	return 1 + protowire.SizeBytes(size)
}
