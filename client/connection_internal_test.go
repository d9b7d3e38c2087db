package client

import (
	"context"
	"net"
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

// A connection that is lost without a word is replaced while calls go on.
func TestSilentlyLostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		socket := bufconn.Listen(1 << 20)
		server := grpc.NewServer()
		weirv1.RegisterWeirServiceServer(server, weirv1.UnimplementedWeirServiceServer{})
		go server.Serve(socket)
		defer server.Stop()
		lost := make(chan struct{})
		dials := 0
		o := defaults()
		conn, err := grpc.NewClient("passthrough:///weir", append(o.dial(), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := socket.DialContext(ctx)
			if dials++; dials == 1 && err == nil {
				c = &silent{c, lost}
			}
			return c, err
		}))...)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		answered := func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := weirv1.NewWeirServiceClient(conn).Take(ctx, &weirv1.TakeRequest{})
			return status.Code(err) == codes.Unimplemented
		}
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
