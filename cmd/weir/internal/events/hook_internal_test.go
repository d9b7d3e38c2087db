package events

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"
)

// silent is a connection of which a network drops all that is sent, once it is lost.
type silent struct {
	net.Conn
	lost *atomic.Bool
}

func (c silent) Write(b []byte) (int, error) {
	if c.lost.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// A connection with HTTP/2 that is lost without a word is replaced.
func TestSilentlyLostConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		socket := bufconn.Listen(1 << 16)
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Errorf("got %s", r.Proto)
			}
		}))
		s.Listener.Close()
		s.Listener, s.EnableHTTP2 = socket, true
		s.StartTLS()
		defer s.Close()
		var lost atomic.Bool
		var dials atomic.Int64
		client := newHook(nil, Webhook{}, "").client
		via := client.Transport.(*http.Transport)
		via.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
		via.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := socket.DialContext(ctx)
			if dials.Add(1) == 1 && err == nil {
				c = silent{c, &lost}
			}
			return c, err
		}
		defer client.CloseIdleConnections()
		post := func() bool {
			r, err := client.Post("https://weir.example/hook", "text/plain", nil)
			if err == nil {
				r.Body.Close()
			}
			return err == nil
		}
		if !post() {
			t.Fatal("got no answer")
		}
		lost.Store(true)
		for began := time.Now(); !post(); {
			if time.Since(began) > time.Minute {
				t.Fatal("no request was answered for a minute")
			}
		}
	})
}
