package grpcserver

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec of generated messages
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/fault"
)

// Received is what [Call.RecvMsg] receives a message into. It differs from a generated
// message in that bytes which are no such message are a fault of the caller, where gRPC
// itself would answer with the code Internal.
type Received struct {
	// Message is overwritten. It keeps nothing of the bytes.
	Message proto.Message

	// Admit, if it is not nil, is called with the bytes before they are decoded. If it
	// returns an error, they are not.
	Admit func(b []byte) error

	// Err is what is wrong with the message: the error of Admit, a [*fault.Fault], or nil.
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
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, r.Message); err != nil {
		r.Err = fault.Newf("message", "cannot be read: want a %s", r.Message.ProtoReflect().Descriptor().FullName())
	}
}

// codec is gRPC's codec of generated messages, which decodes into a [*Received], too.
type codec struct{ encoding.CodecV2 }

func newCodec() encoding.CodecV2 { return codec{encoding.GetCodecV2("proto")} }

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
