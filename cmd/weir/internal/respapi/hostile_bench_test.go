package respapi_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// hostiles are the ways in which clients misuse the port. Each function has its own
// connection, and ends when the service has closed it.
var hostiles = []struct {
	name    string
	clients int
	act     func(dial func() net.Conn)
}{
	{"alone", 0, nil},
	{"beside two threads that only compute", 2, func(func() net.Conn) {
		for n := uint64(1); ; n = n*6364136223846793005 + 1 {
			if n == 0 {
				return
			}
		}
	}},
	{"half a command on each of 200 connections", 200, func(dial func() net.Conn) {
		for {
			c := dial()
			_, _ = io.WriteString(c, "*2\r\n$4\r\nPING\r\n$5\r\nhe")
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
	}},
	{"an argument of 1 GiB, 1000 times a second", 1, func(dial func() net.Conn) {
		for {
			c := dial()
			_, _ = io.WriteString(c, "*2\r\n$4\r\nPING\r\n$1073741824\r\n")
			_, _ = io.Copy(io.Discard, c)
			c.Close()
			time.Sleep(time.Millisecond)
		}
	}},
	{"a million commands whose replies are not read", 8, func(dial func() net.Conn) {
		for {
			c := dial()
			for range 1000 {
				if _, err := io.WriteString(c, manyTakes); err != nil {
					break
				}
			}
			c.Close()
		}
	}},
	{"commands without end whose replies are read", 1, func(dial func() net.Conn) {
		c := dial()
		go func() { _, _ = io.Copy(io.Discard, c) }()
		for {
			if _, err := io.WriteString(c, manyTakes); err != nil {
				return
			}
		}
	}},
}

var manyTakes = strings.Repeat(command("WEIR.TAKE", "user", "flood"), 1000)

// roleEnv makes the test program a service, if it is "serve", and otherwise a hostile
// client: then it is the name of a row of hostiles and an address.
const roleEnv = "WEIR_RESP_ROLE"

func TestMain(m *testing.M) {
	switch name, address, hostile := strings.Cut(os.Getenv(roleEnv), "@"); {
	case hostile:
		misuse(name, address)
	case name == "serve":
		if err := serveForOthers(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		os.Exit(m.Run())
	}
}

// misuse runs the clients of a row of hostiles until standard input ends.
func misuse(name, address string) {
	for _, h := range hostiles {
		if h.name != name {
			continue
		}
		for range h.clients {
			go h.act(func() net.Conn {
				c, err := net.Dial("tcp", address)
				if err != nil {
					os.Exit(0) // the service has ended
				}
				return c
			})
		}
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// serveForOthers serves on a free port, which it prints, until standard input ends.
func serveForOthers() error {
	s, closeAll, err := newBareServer(postsRule, nil)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = s.Close()
	}()
	return errors.Join(s.Serve(l), closeAll())
}

// child starts the test program in a role, and returns what ends it and what it prints.
func child(b *testing.B, role string) io.Reader {
	b.Helper()
	c := exec.CommandContext(b.Context(), os.Args[0])
	c.Env = append(os.Environ(), roleEnv+"="+role)
	in, err := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err, err2, c.Start()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		_ = c.Wait()
	})
	return out
}

// BenchmarkBesideHostile measures what a client waits for a take, one each millisecond,
// while another process misuses the port. The service is a separate process.
func BenchmarkBesideHostile(b *testing.B) {
	for _, h := range hostiles {
		b.Run(strings.ReplaceAll(h.name, " ", "_"), func(b *testing.B) {
			address, err := bufio.NewReader(child(b, "serve")).ReadString('\n')
			if err != nil {
				b.Fatal(err)
			}
			address = strings.TrimSpace(address)
			child(b, h.name+"@"+address)
			c, err := net.Dial("tcp", address)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			r := bufio.NewReader(c)
			take := []byte(command("WEIR.CHECK", "user", "42"))
			time.Sleep(200 * time.Millisecond) // the other process is at work
			var waits []time.Duration
			for b.Loop() {
				begin := time.Now()
				if _, err := c.Write(take); err != nil {
					b.Fatal(err)
				}
				for range checkLines {
					if _, err := r.ReadString('\n'); err != nil {
						b.Fatal(err)
					}
				}
				waits = append(waits, time.Since(begin))
				time.Sleep(time.Millisecond)
			}
			slices.Sort(waits)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(waits[len(waits)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// checkLines is the number of lines of the reply to a check: an array of an integer and
// four texts.
const checkLines = 1 + 1 + 4*2
