package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/cmd/weir/internal/server"
	"github.com/weirhq/weir/internal/redistest"
)

// A client with HTTP/2 that gives up most of its requests loses its connection. One
// that waits for more answers than it gives up keeps it.
func TestRequestsThatAreGivenUp(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ waits, gives, sheds int }{
		{waits: 0, gives: 64, sheds: 0},
		{waits: 0, gives: 65, sheds: 1},
		{waits: 150, gives: 120, sheds: 0},
		{waits: 110, gives: 120, sheds: 1},
	} {
		t.Run(fmt.Sprintf("waits=%d,gives=%d", tc.waits, tc.gives), func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var sheds atomic.Int64
			begun := make(chan bool)
			s := server.ServeLimited(l, 10, 0, func() { sheds.Add(1) }, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					begun <- true
					<-r.Context().Done()
				}
			}))
			defer s.Close()
			via := &http.Transport{Protocols: new(http.Protocols)}
			via.Protocols.SetUnencryptedHTTP2(true)
			defer via.CloseIdleConnections()
			visit := func(ctx context.Context, path string) error {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.Addr().String()+path, http.NoBody)
				if err != nil {
					return err
				}
				resp, err := via.RoundTrip(req)
				if err == nil {
					resp.Body.Close()
				}
				return err
			}
			for range tc.waits {
				if err := visit(t.Context(), "/"); err != nil {
					t.Fatal(err)
				}
			}
			for given := 0; given < tc.gives; {
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- visit(ctx, "/slow") }()
				select {
				case <-begun:
					given++
					cancel()
					if err := <-ended; err == nil {
						t.Error("got an answer for a request that was given up")
					}
				case err := <-ended: // the client did not know yet that the connection is closed
					cancel()
					if tc.sheds == 0 {
						t.Fatal(err)
					}
				}
			}
			if tc.sheds == 0 {
				if err := visit(t.Context(), "/"); err != nil {
					t.Errorf("the next request: got %v", err)
				}
			}
			s.Close() // ends all handlers
			redistest.Eventually(t, "connections are closed", func() bool { return int(sheds.Load()) == tc.sheds })
		})
	}
}

// Connections whose callers were only refused are closed first, and then those that are idle: a stream that goes on is not,
// not even for new ones, which are spared.
func TestWhichConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		auth := access.Authenticator{Keys: scripttest.Keys(t, "", access.Own{Name: "ann", Token: "ann", Scopes: access.All})}
		l := bufconn.Listen(1 << 10)
		s := server.ServeLimited(l, 3, 5*time.Second, func() {}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := auth.Authenticate(access.CredentialsOf(r), access.None); err != nil {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			for r.URL.Path == "/stream" && r.Context().Err() == nil {
				_, _ = io.WriteString(w, ".")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(time.Second):
				}
			}
		}))
		defer s.Close()
		ask := func(path, token string) (closed *atomic.Bool) {
			c, err := l.DialContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", path, token)
			closed = new(atomic.Bool)
			go func() {
				_, _ = io.Copy(io.Discard, c)
				closed.Store(true)
			}()
			time.Sleep(10 * time.Second)
			return closed
		}
		stream, idle, refused := ask("/stream", "ann"), ask("/", "ann"), ask("/", "wrong")
		ask("/", "ann")
		if !refused.Load() || idle.Load() || stream.Load() {
			t.Errorf("closed: refused %t, idle %t, stream %t; want the refused one", refused.Load(), idle.Load(), stream.Load())
		}
		ask("/", "ann")
		if !idle.Load() || stream.Load() {
			t.Errorf("closed: idle %t, stream %t; want the idle one", idle.Load(), stream.Load())
		}
		for range 5 {
			if _, err := l.DialContext(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if stream.Load() {
			t.Error("new connections have ended the stream")
		}
	})
}

// However many connections one tenant has, and uses, others connect and keep theirs.
func TestConnectionsOfOneTenant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		auth := access.Authenticator{Keys: scripttest.Keys(t, "",
			access.Own{Name: "ann", Token: "ann", Scopes: access.Decide}, access.Own{Name: "bob", Token: "bob", Scopes: access.Decide})}
		l := bufconn.Listen(1 << 10)
		s := server.ServeLimited(l, 16, 0, func() {}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if _, err := auth.Authenticate(access.CredentialsOf(r), access.None); err != nil {
				t.Error(err)
			}
		}))
		defer s.Close()
		connect := func() net.Conn {
			c, err := l.DialContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			time.Sleep(time.Second)
			return c
		}
		ask := func(c net.Conn, token string) {
			fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", token)
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Errorf("%s: got %v, want an answer", token, err)
				return
			}
			resp.Body.Close()
		}
		kept := connect()
		ask(kept, "ann")
		for range 30 {
			ask(connect(), "bob")
		}
		newcomer := connect()
		ask(connect(), "bob")
		ask(newcomer, "ann")
		ask(kept, "ann")
	})
}

// Where new connections are spared, such as those of probes on the admin address, further ones
// take the places of connections whose callers were admitted before.
func TestNewConnectionsAreSpared(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var sheds atomic.Int64
	const most = 4
	everyone := (*access.Authenticator)(nil)
	s := server.ServeLimited(l, most, time.Hour, func() { sheds.Add(1) }, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := everyone.Authenticate(access.CredentialsOf(r), access.None); err != nil {
			t.Error(err)
		}
	}))
	defer s.Close()
	for range most {
		askOn(t, connect(t, l.Addr().String()))
	}
	probe := connect(t, l.Addr().String())
	for range most - 2 {
		askOn(t, connect(t, l.Addr().String()))
	}
	redistest.Eventually(t, "three are closed", func() bool { return sheds.Load() == most-1 })
	askOn(t, probe)
}

// addressed is a listener whose connections have the address that is next.
type addressed struct {
	net.Listener
	next chan string
}

type addressedConn struct {
	net.Conn
	from net.Addr
}

func (c addressedConn) RemoteAddr() net.Addr { return c.from }

func (l addressed) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return addressedConn{c, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(<-l.next))}, nil
}

// Where new connections are spared, those of one address cost no other address its own, not even one that waits.
func TestOtherAddressesAreSpared(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var sheds atomic.Int64
	const most, flood = 4, 20
	next := make(chan string, flood+1)
	s := server.ServeLimited(addressed{l, next}, most, time.Hour, func() { sheds.Add(1) }, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	dialFrom := func(from string) net.Conn {
		next <- from
		return connect(t, l.Addr().String())
	}
	probe := dialFrom("192.0.2.1:1")
	askOn(t, probe)
	for i := range flood {
		dialFrom(fmt.Sprintf("[2001:db8::%d]:2", i+1))
	}
	redistest.Eventually(t, "those beyond the limit are closed", func() bool { return sheds.Load() == flood+1-most })
	askOn(t, probe)
}

// A client that holds back the end of a request, or does not read an answer, keeps no new
// connections away.
func TestSlowClientsMakeRoom(t *testing.T) {
	t.Parallel()
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" // and SETTINGS
	// HEADERS that do not end the stream: a POST of / to x over http.
	const head = "\x01\x04\x00\x00\x00\x01\x83\x86\x84\x41\x01x"
	for name, sent := range map[string]string{
		"HTTP/1 body":       "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n",
		"HTTP/2 body":       preface + "\x00\x00\x06" + head,
		"HTTP/2 empty body": preface + "\x00\x00\x09" + head + "\x5c\x010", // content-length: 0
		"HTTP/1 answer":     "GET /large HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			const most = 3
			var requests atomic.Int64
			s := server.ServeLimited(l, most, 0, func() {}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/large" {
					requests.Add(1)
					_, _ = io.Copy(io.Discard, r.Body)
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(http.StatusOK)
				requests.Add(1)
				for range 64 {
					_, _ = w.Write(make([]byte, 1<<20))
				}
			}))
			defer s.Close()
			open := func(text string) net.Conn {
				c := connect(t, l.Addr().String())
				if _, err := io.WriteString(c, text); err != nil {
					t.Fatal(err)
				}
				return c
			}
			for range most {
				c := open(sent)
				if name == "HTTP/2 empty body" { // its handler may wait for the end
					const ping = "received"
					_, _ = io.WriteString(c, "\x00\x00\x08\x06\x00\x00\x00\x00\x00"+ping)
					for got := ""; !strings.Contains(got, ping); {
						b := make([]byte, 1<<10)
						n, err := c.Read(b)
						if err != nil {
							t.Fatal(err)
						}
						got += string(b[:n])
					}
				}
			}
			if name != "HTTP/2 empty body" {
				redistest.Eventually(t, "all are served", func() bool { return requests.Load() == most })
			}
			for range 2 * most {
				c := open("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				if resp.Body.Close(); resp.StatusCode != http.StatusOK {
					t.Errorf("got %s, want an answer", resp.Status)
				}
			}
		})
	}
}

// Requests of HTTP/2 that wait for their clients are limited over all connections. Beyond the limit the
// connection with most of them is closed.
func TestMostWaitingRequests(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	addr, sheds := limited(t, 10, func(_ http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
	})
	client := func() (*http.Client, func()) {
		via := &http.Transport{Protocols: new(http.Protocols)}
		via.Protocols.SetUnencryptedHTTP2(true)
		return &http.Client{Transport: via}, via.CloseIdleConnections
	}
	greedy, closeGreedy := client()
	defer closeGreedy()
	modest, closeModest := client()
	defer closeModest()
	post := func(c *http.Client, ended chan<- error) (end func() error) {
		body, w := io.Pipe()
		n := requests.Load()
		go func() {
			resp, err := c.Post("http://"+addr, "", body)
			if err == nil {
				resp.Body.Close()
			}
			ended <- err
		}()
		redistest.Eventually(t, "the request is served", func() bool { return requests.Load() > n })
		return w.Close
	}
	refused, answered := make(chan error, server.MostWaits), make(chan error, server.MostWaits)
	for range server.MostWaits - 2 {
		end := post(greedy, refused)
		t.Cleanup(func() { _ = end() })
	}
	var ends []func() error
	for range 3 { // the third is one too many
		ends = append(ends, post(modest, answered))
	}
	for range server.MostWaits - 2 {
		if err := <-refused; err == nil {
			t.Error("got an answer for a request of the connection with most, want it closed")
		}
	}
	for _, end := range ends {
		if err := end(); err != nil {
			t.Error(err)
		}
		if err := <-answered; err != nil {
			t.Errorf("got %v for a request of another connection", err)
		}
	}
	if n := sheds.Load(); n != 1 {
		t.Errorf("got %d connections closed, want 1", n)
	}
}

// A request of HTTP/2 whose small answer its client does not take waits for the client.
func TestSmallAnswersWait(t *testing.T) {
	t.Parallel()
	addr, sheds := limited(t, 100, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "no")
	})
	c := connect(t, addr)
	sent := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x06\x04\x00\x00\x00\x00\x00" + "\x00\x04\x00\x00\x00\x00" // SETTINGS: windows of 0 bytes
	for i := range server.MostWaits + 1 {
		sent += "\x00\x00\x06\x01\x05\x00\x00\x00" + string(rune(2*i+1)) + "\x82\x86\x84\x41\x01x" // GET / of http://x
	}
	fmt.Fprint(c, sent)
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) || sheds.Load() != 1 {
		t.Errorf("got %v and %d closed, want the end of the connection", err, sheds.Load())
	}
}

// A frame of HTTP/2 takes no memory for more than its connection may send at a time.
func TestLargeFrames(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *config.Config) { c.Listen = "h2c://127.0.0.1:0" })
	c := connect(t, strings.TrimPrefix(s.api, "http://"))
	fmt.Fprint(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+"\x00\x00\x00\x04\x00\x00\x00\x00\x00"+"\x10\x00\x00\x00\x00\x00\x00\x00\x01") // the head of DATA of 1 MiB
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	if answer, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(string(answer), "\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x06") { // GOAWAY: FRAME_SIZE_ERROR
		t.Errorf("got %q and %v, want that the frame is too large", answer, err)
	}
}
