package grpcserver

import (
	"bytes"
	"iter"
	"unicode/utf8"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec of generated messages
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/fault"
)

// Received is the argument of [Call.RecvMsg]. Unlike with a generated message, bytes that are not such
// a message are a fault of the caller; gRPC itself would answer with the code Internal.
type Received struct {
	// Message is overwritten. It does not refer to the bytes.
	Message proto.Message

	// Admit, if it is not nil, is called with the bytes before they are decoded. If it
	// returns an error, they are not.
	Admit func(b []byte) error

	// Texts, if it is not empty, has the numbers of the fields that lead to texts which others than the
	// caller choose. Such a text need not be UTF-8: see [ToValid].
	Texts []protowire.Number

	// Err is the error of the message: that of Admit, a [*fault.Fault], or nil.
	Err error

	size int // of the message, in bytes
}

func (r *Received) decode(b []byte) {
	r.size, r.Err = len(b), nil
	if r.Admit != nil {
		if r.Err = r.Admit(b); r.Err != nil {
			return
		}
	}
	options := proto.UnmarshalOptions{DiscardUnknown: true}
	err := options.Unmarshal(b, r.Message)
	if err != nil && len(r.Texts) > 0 {
		b = bytes.Clone(b) // gRPC's buffers are read-only
		toValid(b, r.Texts)
		err = options.Unmarshal(b, r.Message)
	}
	if err != nil {
		r.Err = fault.Newf("message", "cannot be read: want a %s", r.Message.ProtoReflect().Descriptor().FullName())
	}
}

// toValid calls [ToValid] for the texts that fields lead to.
func toValid(b []byte, fields []protowire.Number) {
	if len(fields) == 0 {
		ToValid(b)
		return
	}
	for value := range Submessages(b, fields[0]) {
		toValid(value, fields[1:])
	}
}

// ToValid replaces each byte of text that is not UTF-8 by a question mark, in place.
func ToValid(text []byte) {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			text[i] = '?'
		}
		i += size
	}
}

// sending is a message that a connection counts until it is written.
type sending struct {
	message proto.Message
	conn    *connection
}

// outgoing returns m so that c counts it, if it is a generated message.
func outgoing(m any, c *connection) any {
	if message, ok := m.(proto.Message); ok && message != nil {
		return sending{message, c}
	}
	return m
}

// Sizes of buffers, in bytes: grpc-go returns buffers of more than 1 KiB when they are written, and
// buffers of more than 32 KiB would have 1 MiB.
const (
	smallestBuffer = 1<<10 + 1
	largestBuffer  = 32 << 10
)

func (s sending) encode() (mem.BufferSlice, error) {
	n := max(proto.Size(s.message), smallestBuffer)
	var b *[]byte
	if n > largestBuffer {
		large := make([]byte, 0, n)
		b = &large
	} else {
		b = s.conn.Get(n)
	}
	text, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend((*b)[:0], s.message)
	if err != nil {
		mem.DefaultBufferPool().Put(b)
		return nil, err
	}
	*b = text
	s.conn.send(int64(len(text)))
	return mem.BufferSlice{mem.NewBuffer(b, s.conn)}, nil
}

// codec is gRPC's codec of generated messages, extended to decode into a [*Received] and to encode
// messages that a connection counts.
type codec struct{ encoding.CodecV2 }

// Marshal implements [encoding.CodecV2].
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if s, ok := v.(sending); ok {
		return s.encode()
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements [encoding.CodecV2].
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	r, ok := v.(*Received)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	b := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer b.Free()
	r.decode(b.ReadOnlyData())
	return nil
}

// Count returns how many messages are in the field of b with a number. Front ends call it
// before a large message is decoded, because an empty message within it takes two bytes, and many times
// as many when it is decoded.
func Count(b []byte, number protowire.Number) (n int) {
	for range Submessages(b, number) {
		n++
	}
	return n
}

// Submessages iterates over the messages in the field of b with a number, up to the point at which b is
// not a message.
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
