package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/config"
)

// grpcurl finds the input and the method of a call.
var grpcurl = regexp.MustCompile(`(?s)^grpcurl .*-d '([^']*)' 127\.0\.0\.1:8082 weir\.v1\.WeirService/(\w+)`)

// TestGRPCPage makes the calls of docs/reference/grpc.md as grpcurl makes them, by the
// descriptors of the API, and compares the answers. Times may differ.
func TestGRPCPage(t *testing.T) {
	t.Parallel()
	blocks := read(t, "../../../../docs/reference/grpc.md")
	socket := filepath.Join(t.TempDir(), "grpc")
	start(t, func(c *config.Config) { c.Rules, c.GRPCListen = rulesFile(t, blocks[0].text), "unix:"+socket })
	conn := dial(t, "unix:"+socket, insecure.NewCredentials())
	methods := weirv1.File_weir_v1_weir_proto.Services().Get(0).Methods()
	calls := 0
	for i, b := range blocks {
		m := grpcurl.FindStringSubmatch(b.text)
		if m == nil {
			continue
		}
		calls++
		method := methods.ByName(protoreflect.Name(m[2]))
		if method == nil {
			t.Errorf("%sthere is no such method", b.text)
			continue
		}
		got, err := invoke(t, conn, method, m[1])
		switch want := blocks[i+1]; want.language {
		case "text":
			if text := "Code: " + status.Code(err).String() + "\nMessage: " + status.Convert(err).Message() + "\n"; text != want.text {
				t.Errorf("%sgot  %swant %s", b.text, text, want.text)
			}
		default:
			if g, w := timeless(t, got), timeless(t, want.text); err != nil || !reflect.DeepEqual(g, w) {
				t.Errorf("%sgot  %v %s\nwant %s", b.text, err, got, want.text)
			}
		}
	}
	if calls < 6 {
		t.Errorf("got %d calls, want those of the page", calls)
	}
}

// invoke sends the messages in a text of JSON, and returns the answers.
func invoke(t *testing.T, conn *grpc.ClientConn, method protoreflect.MethodDescriptor, text string) (answers string, err error) {
	t.Helper()
	name := "/" + string(method.Parent().FullName()) + "/" + string(method.Name())
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, name)
	if err != nil {
		return "", err
	}
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var raw json.RawMessage
		if err := d.Decode(&raw); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		in := dynamicpb.NewMessage(method.Input())
		if err := protojson.Unmarshal(raw, in); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := stream.SendMsg(in); err != nil {
			break // the answer has the reason
		}
	}
	if err := stream.CloseSend(); err != nil {
		return "", err
	}
	var all bytes.Buffer
	for {
		out := dynamicpb.NewMessage(method.Output())
		switch err := stream.RecvMsg(out); {
		case errors.Is(err, io.EOF):
			return all.String(), nil
		case err != nil:
			return "", err
		}
		b, err := protojson.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(append(b, '\n'))
	}
}

// timeless returns the values in a text of JSON, whose times are all the same.
func timeless(t *testing.T, text string) (all []any) {
	t.Helper()
	text = regexp.MustCompile(`"(retryAfter|resetAfter|start)": *"[0-9.TZs:-]+"`).ReplaceAllString(text, `"$1":"some"`)
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		all = append(all, v)
	}
}
