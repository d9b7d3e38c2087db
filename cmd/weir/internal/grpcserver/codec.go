package grpcserver

import (
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/client/grpcmessage"
	"github.com/weirhq/weir/fault"
)

// Message is a message that reads and writes itself. Methods may receive and send
// Messages in place of generated ones.
type Message = grpcmessage.Message

// generated receives a generated message. Text that is no such message is a fault of
// the caller; gRPC itself would answer with the code Internal.
type generated struct {
	to  proto.Message
	err error
}

// ReadMessage implements [Message].
func (g *generated) ReadMessage(b []byte) error {
	if err := proto.Unmarshal(b, g.to); err != nil {
		g.err = fault.Newf("message", "cannot be read: want a %s", g.to.ProtoReflect().Descriptor().FullName())
	}
	return nil
}

// AppendMessage implements [Message].
func (g *generated) AppendMessage(b []byte) ([]byte, error) {
	return proto.MarshalOptions{}.MarshalAppend(b, g.to)
}
