package grpcmessage

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec of generated messages
	"google.golang.org/grpc/mem"
)

// Message is a message that reads and writes itself. With the codec of [New], calls
// receive and send Messages as they do generated messages.
type Message interface {
	// ReadMessage reads b, which it must not keep.
	ReadMessage(b []byte) error

	// AppendMessage appends the message to b.
	AppendMessage(b []byte) ([]byte, error)
}

// codec reads and writes Messages, and all others as gRPC does.
type codec struct{ encoding.CodecV2 }

// New returns the codec.
func New() encoding.CodecV2 { return codec{encoding.GetCodecV2("proto")} }

// Marshal implements [encoding.CodecV2].
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(Message)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	pool := mem.DefaultBufferPool()
	room := pool.Get(1 << 10)
	b, err := m.AppendMessage((*room)[:0])
	if err != nil {
		pool.Put(room)
		return nil, err
	}
	if cap(b) != cap(*room) { // it has grown
		pool.Put(room)
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	*room = b
	return mem.BufferSlice{mem.NewBuffer(room, pool)}, nil
}

// Unmarshal implements [encoding.CodecV2].
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(Message)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	if len(data) == 1 {
		return m.ReadMessage(data[0].ReadOnlyData())
	}
	b := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer b.Free()
	return m.ReadMessage(b.ReadOnlyData())
}
