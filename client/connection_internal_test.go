package client

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	weirv1 "github.com/weirhq/weir/api/weir/v1"
)

// silent is a connection of which a network drops all that is sent, once it is lost.
type silent struct {
	net.Conn
	lost chan struct{}
}

func (c *silent) Write(b []byte) (int, error) {
	select {
	case <-c.lost:
		return len(b), nil
	default:
		return c.Conn.Write(b)
	}
}

// calls runs test with a service to which each connection is dialed with dial. answered makes a call, and reports whether
// it had an answer.
func calls(t *testing.T, dial func(connect func() (net.Conn, error)) (net.Conn, error), test func(t *testing.T, answered func() bool)) {
	synctest.Test(t, func(t *testing.T) {
		socket := bufconn.Listen(1 << 20)
		server := grpc.NewServer()
		weirv1.RegisterWeirServiceServer(server, weirv1.UnimplementedWeirServiceServer{})
		go func() { _ = server.Serve(socket) }()
		defer server.Stop()
		o := defaults()
		conn, err := grpc.NewClient("passthrough:///weir", append(o.dial(), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return dial(func() (net.Conn, error) { return socket.DialContext(ctx) })
		}))...)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		test(t, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := weirv1.NewWeirServiceClient(conn).Take(ctx, &weirv1.TakeRequest{})
			return status.Code(err) == codes.Unimplemented
		})
	})
}

// A connection that is lost without a word is replaced while calls go on.
func TestSilentlyLostConnection(t *testing.T) {
	var dials atomic.Int64
	lost := make(chan struct{})
	calls(t, func(connect func() (net.Conn, error)) (net.Conn, error) {
		c, err := connect()
		if dials.Add(1) == 1 && err == nil {
			c = &silent{c, lost}
		}
		return c, err
	}, func(t *testing.T, answered func() bool) {
		if !answered() {
			t.Fatal("got no answer")
		}
		close(lost)
		for began := time.Now(); !answered(); {
			if time.Since(began) > 30*time.Second {
				t.Fatal("no call was answered for 30 s")
			}
		}
	})
}

// However long a service was away, calls are answered soon after it is back.
func TestServiceIsBack(t *testing.T) {
	var up atomic.Bool
	calls(t, func(connect func() (net.Conn, error)) (net.Conn, error) {
		if !up.Load() {
			return nil, errors.New("connection refused")
		}
		return connect()
	}, func(t *testing.T, answered func() bool) {
		for began := time.Now(); time.Since(began) < 10*time.Minute; time.Sleep(100 * time.Millisecond) {
			if answered() {
				t.Fatal("got an answer without a service")
			}
		}
		up.Store(true)
		time.Sleep(1500 * time.Millisecond)
		if !answered() {
			t.Error("got no answer")
		}
	})
}
