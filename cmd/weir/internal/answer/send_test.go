package answer_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/answer"
)

// pipes is a listener with the connections that its Dial makes.
type pipes chan net.Conn

func (p pipes) Dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p <- there
	return here, nil
}

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A part of an answer may come long after the one before, however short the time for each of them is.
func TestSendAfterAPause(t *testing.T) {
	t.Parallel()
	for name, protocol := range map[string]func(*http.Protocols){
		"HTTP/1": func(p *http.Protocols) { p.SetHTTP1(true) },
		"HTTP/2": func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) },
	} {
		synctest.Test(t, func(t *testing.T) {
			listener, protocols := make(pipes, 1), new(http.Protocols)
			protocol(protocols)
			server := &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for range 3 {
					if err := answer.Send(w, []byte("part\n"), 10*time.Second); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					time.Sleep(15 * time.Second)
				}
			})}
			go func() { _ = server.Serve(listener) }()
			transport := &http.Transport{Protocols: protocols, DialContext: listener.Dial}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://weir/", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(resp.Body); err != nil || string(got) != "part\npart\npart\n" {
				t.Errorf("%s: got %q, %v; want three parts", name, got, err)
			}
			_ = resp.Body.Close()
			transport.CloseIdleConnections()
			_ = server.Close()
			synctest.Wait()
		})
	}
}
