package envoyrls

import (
	"encoding/binary"
	"unicode/utf8"
	"unsafe"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/fault"
)

// The exchange reads calls by itself, into memory that it uses again. What is rare it
// leaves to package proto.

// smallMessage is the size, in bytes, of the largest message whose memory is not reserved.
// A byte of a larger one takes up to readTimes bytes, and generatedTimes more if package
// proto reads it: an entry of 5 bytes is an attribute of 32 and, there, three objects.
const (
	smallMessage   = 64 << 10
	readTimes      = 8
	generatedTimes = 24
)

// ReadMessage implements [grpcserver.Message]. What is wrong with the message is x.wrong:
// it returns no error.
func (x *exchange) ReadMessage(b []byte) error {
	x.wrong = x.readCall(b)
	return nil
}

// readCall reads a call. The strings of the call are views of memory that the next call
// uses again.
func (x *exchange) readCall(b []byte) error {
	if err := excess(b); err != nil {
		return err
	}
	if err := x.makeRoom(b, readTimes); err != nil {
		return err
	}
	x.body = append(x.body[:0], b...)
	if x.in.scan(x.body) {
		return nil
	}
	if err := x.makeRoom(b, generatedTimes); err != nil {
		return err
	}
	in := &rls.RateLimitRequest{}
	if (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, in) != nil {
		return fault.Newf("message", "cannot be read: want a %s", in.ProtoReflect().Descriptor().FullName())
	}
	x.in.set(in)
	return nil
}

// makeRoom reserves the memory for reading b, if b is large.
func (x *exchange) makeRoom(b []byte, times int64) error {
	if len(b) <= smallMessage {
		return nil
	}
	return x.take(times * int64(len(b)))
}

// Tags of fields in messages: a number, and what follows.
const (
	asNumber = byte(protowire.VarintType)
	asBytes  = byte(protowire.BytesType)
)

// scan reads b. It reports false for what it leaves to package proto.
func (r *request) scan(b []byte) (ok bool) {
	r.reset()
	for i := 0; i < len(b); {
		var value []byte
		switch b[i] {
		case 1<<3 | asBytes:
			if r.domain, i, ok = textAt(b, i+1); !ok {
				return false
			}
		case 2<<3 | asBytes:
			if value, i, ok = bytesAt(b, i+1); !ok {
				return false
			}
			d := r.add()
			if !r.scanDescriptor(d, value) {
				return false
			}
			r.added(d)
		case 3<<3 | asNumber:
			var n uint64
			if n, i, ok = numberAt(b, i+1); !ok {
				return false
			}
			r.hits = uint32(n) //nolint:gosec // as package proto cuts it
		default:
			return false
		}
	}
	r.complete()
	return true
}

func (r *request) scanDescriptor(d *descriptor, b []byte) (ok bool) {
	for i := 0; i < len(b); {
		var value []byte
		switch b[i] {
		case 1<<3 | asBytes:
			if value, i, ok = bytesAt(b, i+1); !ok || !r.scanEntry(value) {
				return false
			}
		case 3<<3 | asBytes:
			if value, i, ok = bytesAt(b, i+1); !ok || d.ownHits {
				return false
			}
			d.ownHits = true
			if len(value) == 0 {
				continue
			}
			end := 0
			if d.hits, end, ok = numberAt(value, 1); !ok || value[0] != 1<<3|asNumber || end < len(value) {
				return false
			}
		case 4<<3 | asNumber:
			var n uint64
			if n, i, ok = numberAt(b, i+1); !ok {
				return false
			}
			d.negative = n != 0
		default:
			return false
		}
	}
	return true
}

func (r *request) scanEntry(b []byte) (ok bool) {
	r.attributes = append(r.attributes, weir.Attribute{})
	e := &r.attributes[len(r.attributes)-1]
	for i := 0; i < len(b); {
		switch b[i] {
		case 1<<3 | asBytes:
			e.Name, i, ok = textAt(b, i+1)
		case 2<<3 | asBytes:
			e.Value, i, ok = textAt(b, i+1)
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	return true
}

// numberAt reads the number at b[i:], and returns what follows it.
func numberAt(b []byte, i int) (n uint64, next int, ok bool) {
	if i < len(b) && b[i] < 0x80 {
		return uint64(b[i]), i + 1, true
	}
	if i >= len(b) {
		return 0, i, false
	}
	n, size := protowire.ConsumeVarint(b[i:])
	return n, i + size, size > 0
}

// bytesAt reads the bytes at b[i:], behind their length, and returns what follows them.
func bytesAt(b []byte, i int) (value []byte, next int, ok bool) {
	n, i, ok := numberAt(b, i)
	if !ok || n > uint64(len(b)-i) {
		return nil, i, false
	}
	next = i + int(n) //nolint:gosec // n is at most len(b)
	return b[i:next:next], next, true
}

// textAt returns a view of what bytesAt finds, as text. It reports false if that is not
// UTF-8.
func textAt(b []byte, i int) (text string, next int, ok bool) {
	value, next, ok := bytesAt(b, i)
	if !ok || len(value) == 0 {
		return "", next, ok
	}
	return unsafe.String(&value[0], len(value)), next, isText(value)
}

// isText reports whether b is UTF-8. ASCII, which is most text, takes it a tenth of the
// time of package utf8.
func isText(b []byte) bool {
	const high = 0x8080808080808080
	rest := b
	for ; len(rest) >= 8; rest = rest[8:] {
		if binary.LittleEndian.Uint64(rest)&high != 0 {
			return utf8.Valid(b)
		}
	}
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b[len(b)-8:])&high == 0 || utf8.Valid(b)
	}
	for _, c := range rest {
		if c >= 0x80 {
			return utf8.Valid(b)
		}
	}
	return true
}
