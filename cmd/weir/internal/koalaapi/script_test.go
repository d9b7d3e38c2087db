package koalaapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/koalaapi"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/internal/datatest"
	"github.com/weirhq/weir/window"
)

// bench is koala's API on a socket, over the rules of a script and with a
// clock that the script moves.
type bench struct {
	engine *weir.Engine
	api    *koalaapi.API
	addr   string
	micros atomic.Int64 // the time
	gone   atomic.Bool  // the store
}

// newBench returns an API over the rules of a YAML text.
func newBench(t testing.TB, rules string) *bench {
	t.Helper()
	b := &bench{}
	b.micros.Store(scripttest.Start.UnixMicro())
	b.engine, _ = scripttest.NewEngine(t, rules, func() window.Instant { return window.Instant(b.micros.Load()) })
	b.api = koalaapi.New(namespace.Only(b.engine), koalaapi.Config{Ping: b.ping})
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.addr = socket.Addr().String()
	server := &http.Server{Handler: b.api, MaxHeaderBytes: koalaapi.MaxHead, ErrorLog: log.New(io.Discard, "", 0)}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(koalaapi.Listen(socket)) }()
	t.Cleanup(func() { server.Close(); <-ended })
	return b
}

func (b *bench) ping(context.Context) error {
	if b.gone.Load() {
		return errors.New("gone")
	}
	return nil
}

// used is what a rule has counted for the key of attributes.
func (b *bench) used(t testing.TB, rule string, attributes ...string) int64 {
	t.Helper()
	var all []weir.Attribute
	for _, a := range attributes {
		name, value, _ := strings.Cut(a, "=")
		all = append(all, weir.Attribute{Name: name, Value: value})
	}
	u, err := b.engine.Usage(t.Context(), rule, all)
	if err != nil {
		t.Fatal(err)
	}
	return u.Used
}

// send sends bytes and is all that comes back until the service closes the
// connection, or answers n times.
func (b *bench) send(t testing.TB, text string, n int) string {
	t.Helper()
	conn, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	r := bufio.NewReader(io.TeeReader(conn, &all))
	for range n {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%q: got %v behind %q", text, err, all.String())
		}
		if _, err = io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.Close {
			if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil {
				t.Fatalf("%q: got %q %v behind the last answer", text, rest, err)
			}
			break
		}
	}
	return all.String()
}

// get returns the body of a GET.
func (b *bench) get(t testing.TB, url string) string {
	t.Helper()
	answer := b.send(t, "GET "+url+" HTTP/1.1\r\nHost: koala\r\n\r\n", 1)
	_, body, _ := strings.Cut(answer, "\r\n\r\n")
	return body
}

// TestScripts runs scripts of these commands:
//
//	rules     a rules file
//	send n=2  a request, or several; n is how many answers are read. Lines end
//	          with CRLF, and the last one is a head's unless it is a `body`
//	get       URLs, one a line; prints the bodies of the answers
//	used      rules and the attributes of a key, one rule a line; prints their hits
//	wait 5s   moves the clock
//	store     gone or back
func TestScripts(t *testing.T) {
	t.Parallel()
	datatest.Walk(t, "testdata/*.txt", func(t *testing.T, path string) {
		t.Parallel()
		var b *bench
		datatest.RunTest(t, path, func(t *testing.T, d *datatest.TestData) string {
			switch d.Cmd {
			case "rules":
				b = newBench(t, d.Input)
				return ""
			case "send":
				n, _ := strconv.Atoi(d.Arg("n"))
				text := strings.ReplaceAll(d.Input, "\n", "\r\n")
				if !d.HasArg("body") {
					text += "\r\n\r\n"
				}
				return strings.ReplaceAll(b.send(t, text, max(n, 1)), "\r\n", "\n") + "\n"
			case "get":
				var all strings.Builder
				for url := range strings.SplitSeq(d.Input, "\n") {
					fmt.Fprintf(&all, "%s\n", b.get(t, url))
				}
				return all.String()
			case "used":
				var all strings.Builder
				for line := range strings.SplitSeq(d.Input, "\n") {
					words := strings.Fields(line)
					fmt.Fprintln(&all, b.used(t, words[0], words[1:]...))
				}
				return all.String()
			case "wait":
				b.micros.Add(d.Duration(t).Microseconds())
				return ""
			case "store":
				b.gone.Store(d.CmdArgs[0].Key == "gone")
				return ""
			}
			d.Fatalf(t, "no such command: %s", d.Cmd)
			return ""
		})
	})
}
