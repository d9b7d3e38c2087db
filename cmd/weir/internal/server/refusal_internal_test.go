package server

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/config"
)

// A connection beyond the limit, while the others are at work, gets an answer. On koala's listener it has the row of a
// failure: koala's client for PHP takes an answer that it cannot read for permission.
func TestRefusedConnections(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"http":  "",
		"koala": `{"Ret_type":-1,"Ret_code":0,"Err_no":-5,"Err_msg":"all connections are at work; try again",`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, end := make(chan bool), make(chan bool)
			h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { begun <- true; <-end })
			to := config.Listener{Name: name, Address: config.Address{Scheme: "http", Host: "127.0.0.1:0"}}
			l, err := listen(to, nil, 1, 0, func() {}, h, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { close(end); _ = l.Close(); <-l.ended })
			go func() { _ = l.serve() }()
			connect := func() net.Conn {
				c, err := net.Dial("tcp", l.socket.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				fmt.Fprint(c, "GET /rule/browse HTTP/1.1\r\nHost: x\r\n\r\n")
				return c
			}
			connect()
			<-begun
			resp, err := http.ReadResponse(bufio.NewReader(connect()), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" || !resp.Close {
				t.Errorf("got %s, Retry-After %q, closed %t, %v, want 503, 1, true", resp.Status, resp.Header.Get("Retry-After"), resp.Close, err)
			}
			if !strings.HasPrefix(string(body), want) || want == "" && len(body) > 0 {
				t.Errorf("got %q, want %q", body, want)
			}
		})
	}
}
