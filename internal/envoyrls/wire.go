package envoyrls

import (
	"unicode/utf8"
	"unsafe"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The exchange reads calls and writes answers by itself, into memory that it uses
// again. What is rare it leaves to package proto.

// smallMessage is the size, in bytes, of the largest message that is read here.
const smallMessage = 64 << 10

// ReadMessage implements [grpcserver.Message]. The strings of the call are views of
// memory that the next call uses again.
func (x *exchange) ReadMessage(b []byte) error {
	if len(b) <= smallMessage {
		x.body = append(x.body[:0], b...)
		if x.scan(x.body) {
			return nil
		}
	}
	x.in.Reset()
	return proto.Unmarshal(b, &x.in)
}

// field reads the next field of b. ok is false if it is neither a number nor bytes.
func field(b []byte) (number protowire.Number, value []byte, n uint64, rest []byte, ok bool) {
	number, kind, size := protowire.ConsumeTag(b)
	if size < 0 {
		return 0, nil, 0, nil, false
	}
	b = b[size:]
	switch kind {
	case protowire.VarintType:
		n, size = protowire.ConsumeVarint(b)
	case protowire.BytesType:
		value, size = protowire.ConsumeBytes(b)
		if size >= 0 && value == nil {
			value = b[:0]
		}
	default:
		return 0, nil, 0, nil, false
	}
	if size < 0 {
		return 0, nil, 0, nil, false
	}
	return number, value, n, b[size:], true
}

// text returns b as a view, and whether it is UTF-8.
func text(b []byte) (string, bool) {
	if len(b) == 0 {
		return "", b != nil
	}
	return unsafe.String(&b[0], len(b)), utf8.Valid(b)
}

// scan reads b into x.in. It reports false for what it leaves to package proto.
func (x *exchange) scan(b []byte) bool {
	x.in.Reset()
	x.descriptorsUsed, x.entriesUsed = 0, 0
	list := x.list[:0]
	for len(b) > 0 {
		number, value, n, rest, ok := field(b)
		if !ok {
			return false
		}
		switch number {
		case 1:
			if x.in.Domain, ok = text(value); !ok {
				return false
			}
		case 2:
			if value == nil {
				return false
			}
			d := x.descriptor()
			if !x.scanDescriptor(d, value) {
				return false
			}
			list = append(list, d)
		case 3:
			if value != nil {
				return false
			}
			x.in.HitsAddend = uint32(n) //nolint:gosec // as package proto cuts it
		default:
			return false
		}
		b = rest
	}
	x.list = list
	if len(list) > 0 {
		x.in.Descriptors = list
	}
	return true
}

// descriptor returns an empty descriptor of x.
func (x *exchange) descriptor() *common.RateLimitDescriptor {
	if x.descriptorsUsed == len(x.descriptors) {
		x.descriptors = append(x.descriptors, new(common.RateLimitDescriptor))
	}
	d := x.descriptors[x.descriptorsUsed]
	x.descriptorsUsed++
	entries := d.Entries[:0]
	d.Reset()
	d.Entries = entries
	return d
}

// entry returns an empty entry of x.
func (x *exchange) entry() *common.RateLimitDescriptor_Entry {
	if x.entriesUsed == len(x.entries) {
		x.entries = append(x.entries, new(common.RateLimitDescriptor_Entry))
	}
	e := x.entries[x.entriesUsed]
	x.entriesUsed++
	e.Key, e.Value = "", ""
	return e
}

func (x *exchange) scanDescriptor(d *common.RateLimitDescriptor, b []byte) bool {
	for len(b) > 0 {
		number, value, n, rest, ok := field(b)
		if !ok {
			return false
		}
		switch number {
		case 1:
			if value == nil {
				return false
			}
			e := x.entry()
			if !scanEntry(e, value) {
				return false
			}
			d.Entries = append(d.Entries, e)
		case 3:
			_, inner, hits, more, ok := field(value)
			switch {
			case value == nil, d.HitsAddend != nil:
				return false
			case len(value) == 0:
				hits = 0
			case !ok, inner != nil, len(more) > 0, value[0] != 1<<3:
				return false
			}
			d.HitsAddend = wrapperspb.UInt64(hits)
		case 4:
			if value != nil {
				return false
			}
			d.IsNegativeHits = n != 0
		default:
			return false
		}
		b = rest
	}
	return true
}

func scanEntry(e *common.RateLimitDescriptor_Entry, b []byte) bool {
	for len(b) > 0 {
		number, value, _, rest, ok := field(b)
		if !ok {
			return false
		}
		switch number {
		case 1:
			e.Key, ok = text(value)
		case 2:
			e.Value, ok = text(value)
		default:
			return false
		}
		if !ok {
			return false
		}
		b = rest
	}
	return true
}

// AppendMessage implements [grpcserver.Message].
func (x *exchange) AppendMessage(b []byte) ([]byte, error) {
	out := &x.out
	b = appendNumber(b, 1, uint64(out.OverallCode)) //nolint:gosec // codes are small
	for _, s := range out.Statuses {
		x.scratch = appendStatus(x.scratch[:0], s)
		b = appendBytes(b, 2, x.scratch)
	}
	if out.DynamicMetadata == nil && out.ResponseHeadersToAdd == nil && out.RequestHeadersToAdd == nil && out.RawBody == nil {
		return b, nil
	}
	rest := &rls.RateLimitResponse{
		ResponseHeadersToAdd: out.ResponseHeadersToAdd, RequestHeadersToAdd: out.RequestHeadersToAdd, RawBody: out.RawBody, DynamicMetadata: out.DynamicMetadata,
	}
	return proto.MarshalOptions{}.MarshalAppend(b, rest)
}

func appendNumber(b []byte, field protowire.Number, n uint64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

func appendBytes(b []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), value)
}

func appendStatus(b []byte, s *rls.RateLimitResponse_DescriptorStatus) []byte {
	b = appendNumber(b, 1, uint64(s.Code)) //nolint:gosec // codes are small
	if l := s.CurrentLimit; l != nil {
		size := sizeNumber(uint64(l.RequestsPerUnit)) + sizeNumber(uint64(l.Unit)) //nolint:gosec // units are small
		if l.Name != "" {
			size += 1 + protowire.SizeBytes(len(l.Name))
		}
		times := 0
		if l.UnitMultiplier != nil {
			times = sizeNumber(uint64(l.UnitMultiplier.Value))
			size += 1 + protowire.SizeBytes(times)
		}
		b = protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.BytesType), uint64(size))
		b = appendNumber(b, 1, uint64(l.RequestsPerUnit))
		b = appendNumber(b, 2, uint64(l.Unit)) //nolint:gosec // units are small
		if l.Name != "" {
			b = protowire.AppendString(protowire.AppendTag(b, 3, protowire.BytesType), l.Name)
		}
		if l.UnitMultiplier != nil {
			b = protowire.AppendVarint(protowire.AppendTag(b, 4, protowire.BytesType), uint64(times))
			b = appendNumber(b, 1, uint64(l.UnitMultiplier.Value))
		}
	}
	b = appendNumber(b, 3, uint64(s.LimitRemaining))
	if d := s.DurationUntilReset; d != nil {
		n := uint64(d.Seconds) //nolint:gosec // not negative
		b = protowire.AppendVarint(protowire.AppendTag(b, 4, protowire.BytesType), uint64(sizeNumber(n)))
		b = appendNumber(b, 1, n)
	}
	return b
}

// sizeNumber returns the bytes of a field with a number, which is left out if it is
// 0. The field's own number is below 16.
func sizeNumber(n uint64) int {
	if n == 0 {
		return 0
	}
	return 1 + protowire.SizeVarint(n)
}
