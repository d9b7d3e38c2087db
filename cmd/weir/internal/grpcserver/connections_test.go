package grpcserver_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
)

// frames is what a client of HTTP/2 sends.
type frames []byte

func (f frames) frame(kind, flags byte, stream uint32, payload []byte) frames {
	f = append(f, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags)
	return append(binary.BigEndian.AppendUint32(f, stream), payload...)
}

// say begins a call of Say, and sends n bytes of its message, which has size.
func (f frames) say(stream uint32, size, n int) frames {
	f = f.frame(1, 4, stream, head("Say"))
	body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(size)), make([]byte, n)...)
	for len(body) > 0 {
		part := body[:min(len(body), 16<<10)]
		f, body = f.frame(0, 0, stream, part), body[len(part):]
	}
	return f
}

// head returns the headers of a call of a method.
func head(method string) []byte {
	path := "/" + echo + "/" + method
	head := append([]byte{0x83, 0x86, 0x41, 1, 'x', 0x04, byte(len(path))}, path...)
	head = append(append(head, 0x0f, 0x10, 16), "application/grpc"...)
	return append(append(append(append(head, 0, 2), "te"...), 8), "trailers"...)
}

// pipe returns a server with a bound on memory, its socket, a connection of a client, and
// how many connections were shed.
func pipe(t *testing.T, most int64) (s *grpcserver.Server, path string, conn *grpc.ClientConn, shed *atomic.Int64) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	shed = new(atomic.Int64)
	s = grpcserver.New(grpcserver.Config{Resources: &access.ResourceLimits{Memory: most, Shed: func(string) { shed.Add(1) }}})
	s.Add(echo, "weir/test.proto", methods(nil))
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	if conn, err = grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		_ = s.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, path, conn, shed
}

// attack sends text on a separate connection. The channel that it returns is closed when
// the server has closed the connection.
func attack(t *testing.T, path string, text []byte) (ended chan struct{}) {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		room := make([]byte, 4096)
		for {
			if _, err := c.Read(room); err != nil {
				return
			}
		}
	}()
	go func() { _, _ = c.Write(append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), text...)) }() // the server may not read it
	return ended
}

// Parts of messages take no more memory than the bound: connections are read slowly when they have half of it.
// The calls of others are answered.
func TestHalfMessages(t *testing.T) {
	t.Parallel()
	s, path, conn, shed := pipe(t, 1<<20)
	if _, err := say(t.Context(), conn, "hello"); err != nil {
		t.Fatal(err)
	}
	f := frames{}.frame(4, 0, 0, nil)
	for i := range 40 {
		f = f.say(uint32(2*i+1), 500_000, 60_000)
	}
	ended := [3]chan struct{}{}
	for i := range ended {
		ended[i] = attack(t, path, f)
	}
	for s.Arriving() < 512<<10 {
		time.Sleep(time.Millisecond)
	}
	if _, err := say(t.Context(), conn, "hello"); err != nil {
		t.Errorf("during the attack: %v", err)
	}
	if n := s.Arriving(); n > 1<<20 {
		t.Errorf("got %d bytes of messages that are not complete, want at most 1 MiB", n)
	}
	s.CloseStalled(time.Now().Add(time.Minute))
	for _, c := range ended {
		<-c
	}
	if shed.Load() != 3 {
		t.Errorf("got %d connections shed, want 3", shed.Load())
	}
	empty(t, s)
}

// empty waits until nothing is counted of s: calls end a little later than their
// connections and answers.
func empty(t *testing.T, s *grpcserver.Server) {
	t.Helper()
	for end := time.Now().Add(time.Minute); s.Arriving() != 0; time.Sleep(time.Millisecond) {
		s.CloseStalled(time.Now())
		if time.Now().After(end) {
			t.Fatalf("got %d bytes counted, want none", s.Arriving())
		}
	}
}

// quiet opens streams on which there is nothing to say: one of Each, on which talk sends a
// message and receives its answer, and one that watches the health.
func quiet(t *testing.T, conn *grpc.ClientConn) (talk func()) {
	t.Helper()
	each, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/"+echo+"/Each")
	if err != nil {
		t.Fatal(err)
	}
	talk = func() {
		t.Helper()
		if err := each.SendMsg(wrapperspb.String("x")); err != nil {
			t.Fatal(err)
		}
		if err := each.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			t.Fatal(err)
		}
	}
	talk()
	watch, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	return talk
}

// A connection that sends a part of a message and then nothing is closed. Streams on which
// there is nothing to say, and calls that complete, are not late.
func TestLateMessages(t *testing.T) {
	t.Parallel()
	s, path, conn, shed := pipe(t, 1<<20)
	talk := quiet(t, conn)
	for range 100 {
		if _, err := say(t.Context(), conn, "hello"); err != nil {
			t.Fatal(err)
		}
	}
	empty(t, s)
	ended := attack(t, path, frames{}.frame(4, 0, 0, nil).say(1, 1000, 10))
	for s.Arriving() == 0 { // until the part has come
		time.Sleep(time.Millisecond)
	}
	s.CloseStalled(time.Now().Add(5 * time.Second))
	if shed.Load() != 0 {
		t.Errorf("got %d connections shed after five seconds, want none", shed.Load())
	}
	s.CloseStalled(time.Now().Add(time.Minute))
	<-ended
	if shed.Load() != 1 {
		t.Errorf("got %d connections shed, want one", shed.Load())
	}
	empty(t, s)
	talk()
}

// Calls that ended without their messages do not end the other calls of a connection.
func TestRefusedCalls(t *testing.T) {
	t.Parallel()
	s, _, conn, shed := pipe(t, 1<<20)
	each, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/"+echo+"/Each")
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		err := conn.Invoke(t.Context(), "/"+echo+"/Nothing", wrapperspb.String("hello"), new(wrapperspb.StringValue))
		if status.Code(err) != codes.Unimplemented {
			t.Fatalf("got %v, want that the method is unknown", err)
		}
	}
	s.CloseStalled(time.Now().Add(time.Minute))
	if shed.Load() != 0 {
		t.Errorf("got %d connections shed, want none", shed.Load())
	}
	if err := each.SendMsg(wrapperspb.String("x")); err != nil {
		t.Fatal(err)
	}
	if err := each.RecvMsg(new(wrapperspb.StringValue)); err != nil {
		t.Error(err)
	}
}

// Compressed messages are refused before they are decompressed, and leave nothing counted.
func TestCompressedMessages(t *testing.T) {
	t.Parallel()
	s, _, conn, _ := pipe(t, 1<<20)
	large := wrapperspb.String(strings.Repeat("a", 900_000))
	for name, want := range map[string]codes.Code{
		"/" + echo + "/Say":  codes.Unimplemented,
		"/" + echo + "/None": codes.Unimplemented,
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": codes.Unimplemented,
		healthpb.Health_Watch_FullMethodName:                        codes.Unimplemented,
		healthpb.Health_Check_FullMethodName:                        codes.Internal, // grpc-go's own code
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // a stream would wait
		err := conn.Invoke(ctx, name, large, new(wrapperspb.StringValue), grpc.UseCompressor(gzip.Name))
		cancel()
		if status.Code(err) != want {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	if _, err := say(t.Context(), conn, "hello"); err != nil {
		t.Error(err)
	}
	empty(t, s)
}

// Calls of methods that the server does not have leave nothing counted. Otherwise
// their connection would be late.
func TestUnknownMethods(t *testing.T) {
	t.Parallel()
	s, _, conn, _ := pipe(t, 1<<20)
	for _, name := range []string{"/" + echo + "/None", "/none.None/None", "/grpc.none.None/None"} {
		err := conn.Invoke(t.Context(), name, wrapperspb.String("x"), new(wrapperspb.StringValue))
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: got %v, want Unimplemented", name, err)
		}
		empty(t, s)
	}
}

// Connections that speak no HTTP/2 leave nothing behind.
func TestNoHTTP2(t *testing.T) {
	t.Parallel()
	s, path, conn, _ := pipe(t, 1<<20)
	for range 20 {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\nand some more text"))
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		for room := make([]byte, 512); err == nil; {
			_, err = c.Read(room)
		}
		_ = c.Close()
	}
	if _, err := say(context.Background(), conn, "hello"); err != nil {
		t.Error(err)
	}
	if n := s.Connections(); n != 1 {
		t.Errorf("got %d connections, want one", n)
	}
}

// pipes is a listener of connections in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

// counted counts what is read from a connection.
type counted struct {
	net.Conn
	read *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// flood sends text to a server on a separate connection, and returns how much of it was read after each of some
// times, and how many connections were shed by then.
func flood(t *testing.T, auth *access.Authenticator, text []byte, after ...time.Duration) (read, shed []int64) {
	t.Helper()
	var sheds, bytes atomic.Int64
	s := grpcserver.New(grpcserver.Config{Auth: auth, Resources: &access.ResourceLimits{Shed: func(string) { sheds.Add(1) }}})
	s.Add(echo, "weir/test.proto", methods(nil))
	l := make(pipes)
	go func() { _ = s.Serve(l) }()
	client, server := net.Pipe()
	l <- counted{server, &bytes}
	go func() { _, _ = io.Copy(io.Discard, client) }()
	go func() { _, _ = client.Write(append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), text...)) }()
	for _, d := range after {
		time.Sleep(d)
		synctest.Wait()
		read, shed = append(read, bytes.Load()), append(shed, sheds.Load())
	}
	_ = client.Close()
	close(l)
	_ = s.Close()
	return read, shed
}

// A client that gives up at once calls that it may not make is read slowly and disconnected in the end, also if it makes
// the server reset them. One that waits for most of its calls may give up the others; and one that may make them, all:
// it can be a proxy whose own clients leave.
func TestRapidReset(t *testing.T) {
	t.Parallel()
	settings := frames{}.frame(4, 0, 0, nil)
	reset, window, data, some := settings, settings, settings, settings
	for i := range 2000 {
		id := uint32(2*i + 1)
		if i%3 > 0 {
			some = some.call(id, "Say")
		} else {
			some = some.say(id, 10, 0).frame(3, 0, id, []byte{0, 0, 0, 8})
		}
		reset = reset.say(id, 10, 0).frame(3, 0, id, []byte{0, 0, 0, 8})
		window = window.say(id, 10, 0).frame(8, 0, id, make([]byte, 4))           // of 0, which is wrong
		data = data.frame(1, 5, id, head("Say")).frame(0, 0, id, make([]byte, 5)) // after the end
	}
	for name, tc := range map[string]struct {
		frames
		abusive bool
	}{"resets": {reset, true}, "windows": {window, true}, "data": {data, true}, "some resets": {some, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				keys, err := access.OpenKeys("", access.Own{Name: "web", Token: "web"})
				if err != nil {
					t.Fatal(err)
				}
				defer keys.Close()
				for _, auth := range []*access.Authenticator{nil, {Keys: keys}} {
					read, shed := flood(t, auth, tc.frames, time.Second, time.Hour)
					switch all := int64(len(tc.frames)); {
					case auth != nil && tc.abusive:
						if read[0] > 64<<10 || shed[0] != 0 || shed[1] != 1 {
							t.Errorf("got %d bytes read and %d connections shed after a second and an hour, want at most 64 KiB, and one in the end", read, shed)
						}
					case read[0] < all || shed[1] != 0:
						t.Errorf("got %d of %d bytes read and %d connections shed, want all and none", read[0], all, shed[1])
					}
				}
			})
		})
	}
}

// call makes a call of a method, with a message of one character.
func (f frames) call(stream uint32, method string) frames {
	return f.frame(1, 4, stream, head(method)).frame(0, 1, stream, append([]byte{0, 0, 0, 0, 3}, 0x0a, 1, 'x'))
}

// A connection whose client takes no answers is closed: one with the answer to a call that
// has ended, and one with a stream that waits to send. Clients that have nothing to take
// are not late.
func TestAnswersNotTaken(t *testing.T) {
	t.Parallel()
	s, path, conn, shed := pipe(t, 1<<20)
	if _, err := say(t.Context(), conn, "hello"); err != nil {
		t.Fatal(err)
	}
	talk := quiet(t, conn)
	// The window of each stream is 0: nothing of a message can be sent.
	closed := frames{}.frame(4, 0, 0, []byte{0, 4, 0, 0, 0, 0})
	unary := attack(t, path, closed.call(1, "Say"))
	many := attack(t, path, closed.call(1, "Flood"))
	for now, end := time.Now(), time.Now().Add(time.Minute); shed.Load() < 2; time.Sleep(time.Millisecond) {
		if s.CloseStalled(now); time.Now().After(end) {
			t.Fatalf("got %d connections shed, want two", shed.Load())
		}
		now = now.Add(time.Second)
	}
	<-unary
	<-many
	talk()
	if _, err := say(t.Context(), conn, "hello"); err != nil {
		t.Error(err)
	}
}

// waits returns what a client sends who has calls that wait for their messages; with a token, if there is one.
func waits(calls int, token string) frames {
	text := head("Say")
	if token != "" {
		text = append(append(append(text, 0, 13), "authorization"...), byte(len("Bearer "+token)))
		text = append(append(text, "Bearer "...), token...)
	}
	f := frames{}.frame(4, 0, 0, nil)
	for i := range calls {
		f = f.frame(1, 4, uint32(2*i+1), text)
	}
	return f
}

// partly returns the first n bytes of what a client sends whose first headers are a frame of 16 KiB.
func partly(n int) frames {
	return frames{}.frame(4, 0, 0, nil).frame(1, 4, 1, make([]byte, 16<<10))[:n]
}

// crowd is a server with the tokens web and other, and a bound on memory of 1 MiB, in virtual time.
type crowd struct {
	l    pipes
	open []net.Conn
}

// join opens a connection on which text is sent, and returns whether the server has closed it.
func (c *crowd) join(text frames) *atomic.Bool {
	client, server := net.Pipe()
	c.l <- server
	c.open = append(c.open, client)
	closed := new(atomic.Bool)
	go func() {
		_, _ = io.Copy(io.Discard, client)
		closed.Store(true)
	}()
	go func() { _, _ = client.Write(append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), text...)) }()
	time.Sleep(time.Millisecond)
	synctest.Wait()
	return closed
}

// crowded runs test with a crowd.
func crowded(t *testing.T, test func(t *testing.T, c *crowd)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		keys, err := access.OpenKeys("", access.Own{Name: "web", Token: "web", Scopes: access.All}, access.Own{Name: "other", Token: "other", Scopes: access.All &^ access.Admin})
		if err != nil {
			t.Fatal(err)
		}
		defer keys.Close()
		s := grpcserver.New(grpcserver.Config{Auth: &access.Authenticator{Keys: keys}, Resources: &access.ResourceLimits{Memory: 1 << 20}})
		s.Add(echo, "weir/test.proto", methods(nil))
		c := &crowd{l: make(pipes)}
		go func() { _ = s.Serve(c.l) }()
		test(t, c)
		for _, client := range c.open {
			_ = client.Close()
		}
		close(c.l)
		_ = s.Close()
	})
}

// Clients without a token cannot end the connections of admitted callers by what they leave incomplete: beyond the bound those
// are closed that have waited longest. A new client is spared.
func TestStrangersGiveWay(t *testing.T) {
	t.Parallel()
	crowded(t, func(t *testing.T, c *crowd) {
		busy := c.join(waits(30, "web"))
		var strangers []*atomic.Bool
		for range 60 {
			strangers = append(strangers, c.join(partly(16_000)))
		}
		client := c.join(waits(0, "")) // its first call follows
		for range 20 {
			strangers = append(strangers, c.join(partly(16_000)))
		}
		time.Sleep(1100 * time.Millisecond) // closed ones linger
		if busy.Load() || client.Load() {
			t.Errorf("got the busy connection closed: %t, and the new one: %t; want neither", busy.Load(), client.Load())
		}
		if !strangers[0].Load() || strangers[79].Load() {
			t.Errorf("got the first stranger's connection closed: %t, and the last one's: %t; want only the first", strangers[0].Load(), strangers[79].Load())
		}
	})
}

// A caller whose many connections have too much together loses some of these, and others none of theirs.
func TestCallersWithMostGiveWay(t *testing.T) {
	t.Parallel()
	crowded(t, func(t *testing.T, c *crowd) {
		busy := c.join(waits(12, "web"))
		var closed []*atomic.Bool
		for range 30 {
			closed = append(closed, c.join(waits(3, "other")))
		}
		time.Sleep(3500 * time.Millisecond) // they are read slowly from half of the bound on
		if busy.Load() || !slices.ContainsFunc(closed, func(one *atomic.Bool) bool { return one.Load() }) {
			t.Errorf("got the busy connection closed: %t, want one of the others", busy.Load())
		}
	})
}

// An admitted caller with too much does not end the connections of new clients.
func TestNewClientsAreSpared(t *testing.T) {
	t.Parallel()
	crowded(t, func(t *testing.T, c *crowd) {
		client := c.join(partly(1000))
		var less []*atomic.Bool
		for range 18 {
			less = append(less, c.join(waits(3, "web")))
		}
		most := c.join(waits(20, "web"))
		time.Sleep(3500 * time.Millisecond) // it is read slowly from half of the bound on
		for _, one := range less {
			if one.Load() {
				t.Error("got a connection with few calls closed")
			}
		}
		if client.Load() || !most.Load() {
			t.Errorf("got the new connection closed: %t, and the one with most: %t; want only the latter", client.Load(), most.Load())
		}
	})
}

// A connection whose headers are incomplete for some seconds is closed, even if more of them arrives. One whose
// headers are complete may wait for its first call.
func TestLateHeaders(t *testing.T) {
	t.Parallel()
	crowded(t, func(t *testing.T, c *crowd) {
		idle, silent := c.join(waits(0, "web")), c.join(partly(100))
		text := partly(2000)
		slow := c.join(text[:1000])
		for range 4 {
			time.Sleep(time.Second)
			go func() { _, _ = c.open[2].Write(text[1000:1010]) }()
		}
		synctest.Wait()
		if silent.Load() || slow.Load() {
			t.Error("got a connection closed after four seconds, want none")
		}
		for range 5 {
			time.Sleep(time.Second)
			go func() { _, _ = c.open[2].Write(text[1000:1010]) }()
		}
		if idle.Load() || !silent.Load() || !slow.Load() {
			t.Errorf("got the connection without calls closed: %t, the one with incomplete headers: %t, and the one with slow ones: %t; want the last two", idle.Load(), silent.Load(), slow.Load())
		}
	})
}

// Connections that are silent, or send too little, do not delay new ones.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	crowded(t, func(t *testing.T, c *crowd) {
		began := time.Now()
		var client net.Conn
		for i := range 1000 {
			var server net.Conn
			client, server = net.Pipe()
			c.open = append(c.open, client)
			c.l <- server
			go func(client net.Conn) {
				if i%2 == 0 {
					go func() { _, _ = client.Write([]byte("P")) }()
				}
				_, _ = io.Copy(io.Discard, client)
			}(client)
		}
		for _, text := range []string{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", string(frames{}.frame(4, 0, 0, nil))} {
			if _, err := io.WriteString(client, text); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("got the last of 1,000 connections read after %s, want at once", took)
		}
	})
}
