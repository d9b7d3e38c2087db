package server_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/server"
)

// countedConn counts how often deadlines of a connection are set.
type countedConn struct {
	net.Conn
	moves int
}

func (c *countedConn) SetReadDeadline(t time.Time) error {
	c.moves++
	return c.Conn.SetReadDeadline(t)
}

func (c *countedConn) SetWriteDeadline(t time.Time) error {
	c.moves++
	return c.Conn.SetWriteDeadline(t)
}

// lazyPipe returns the two ends of a connection. The first end is lazy.
func lazyPipe(t *testing.T) (lazy, far net.Conn, _ *countedConn) {
	near, far := net.Pipe()
	c := &countedConn{Conn: near}
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	return server.NewLazyConn(c), far, c
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) && errors.As(err, &timeout) && timeout.Timeout()
}

// A call ends at the wanted deadline, whatever deadlines came before.
func TestLazyDeadlines(t *testing.T) {
	for _, tc := range []struct {
		name     string
		earlier  []time.Duration // deadlines of calls that succeed, one after the other
		deadline time.Duration
	}{
		{"the first", nil, time.Second},
		{"a later one", []time.Duration{time.Second}, time.Minute},
		{"an earlier one", []time.Duration{time.Minute}, time.Second},
		{"later and earlier ones", []time.Duration{5 * time.Second, 8 * time.Second, 2 * time.Minute}, 6 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, far, _ := lazyPipe(t)
				one := make([]byte, 1)
				for _, d := range tc.earlier {
					if err := c.SetDeadline(time.Now().Add(d)); err != nil {
						t.Fatal(err)
					}
					go func() { _, _ = far.Write(one) }()
					if _, err := c.Read(one); err != nil {
						t.Fatal(err)
					}
					go func() { _, _ = far.Read(one) }()
					if _, err := c.Write(one); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				for _, call := range []func([]byte) (int, error){c.Read, c.Write} {
					began := time.Now()
					if err := c.SetDeadline(began.Add(tc.deadline)); err != nil {
						t.Fatal(err)
					}
					n, err := call(one)
					if took := time.Since(began); n != 0 || !isTimeout(err) || took != tc.deadline {
						t.Errorf("got %d bytes and %v after %v, want a timeout after %v", n, err, took, tc.deadline)
					}
				}
			})
		})
	}
}

// A call without a deadline goes on after an earlier deadline has passed.
func TestLazyWithoutDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, far, _ := lazyPipe(t)
		one := make([]byte, 1)
		if err := c.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = far.Write(one) }()
		if _, err := c.Read(one); err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Hour)
			_, _ = far.Write(one)
		}()
		if n, err := c.Read(one); n != 1 || err != nil {
			t.Errorf("got %d bytes and %v, want the byte that comes after an hour", n, err)
		}
	})
}

// A deadline that is set during a call ends the call.
func TestLazyDeadlineDuringCall(t *testing.T) {
	for _, tc := range []struct {
		name string
		at   func() time.Time
		want time.Duration
	}{
		{"long past", func() time.Time { return time.Unix(1, 0) }, time.Second},
		{"in a while", func() time.Time { return time.Now().Add(2 * time.Second) }, 3 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, far, _ := lazyPipe(t)
				began := time.Now()
				if err := c.SetReadDeadline(began.Add(time.Minute)); err != nil {
					t.Fatal(err)
				}
				go func() {
					time.Sleep(time.Second)
					_ = c.SetReadDeadline(tc.at())
				}()
				one := make([]byte, 1)
				if _, err := c.Read(one); !isTimeout(err) || time.Since(began) != tc.want {
					t.Errorf("got %v after %v, want a timeout after %v", err, time.Since(began), tc.want)
				}
				// The connection stays usable.
				if err := c.SetReadDeadline(time.Time{}); err != nil {
					t.Fatal(err)
				}
				go func() { _, _ = far.Write(one) }()
				if _, err := c.Read(one); err != nil {
					t.Errorf("got %v, want the byte", err)
				}
			})
		})
	}
}

// A deadline that is long past ends a call before it reaches the socket.
func TestLazyDeadlineBeforeCall(t *testing.T) {
	c, _, counts := lazyPipe(t)
	if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !isTimeout(err) {
		t.Errorf("got %v, want a timeout", err)
	}
	if counts.moves != 0 {
		t.Errorf("got %d deadlines set on the socket, want none", counts.moves)
	}
}

// A write that an old deadline of the socket interrupts is completed.
func TestLazyWriteGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, far, _ := lazyPipe(t)
		if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.ReadFull(far, make([]byte, 1)) }()
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := c.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		sent, got := bytes.Repeat([]byte("weir"), 100), make([]byte, 400)
		done := make(chan error)
		go func() {
			_, _ = io.ReadFull(far, got[:150])
			time.Sleep(10 * time.Second)
			_, err := io.ReadFull(far, got[150:])
			done <- err
		}()
		if n, err := c.Write(sent); n != len(sent) || err != nil {
			t.Fatalf("got %d bytes and %v, want all %d", n, err, len(sent))
		}
		if err := <-done; err != nil || !bytes.Equal(got, sent) {
			t.Errorf("got %q and %v, want what was sent", got, err)
		}
	})
}

// Requests on one connection set few deadlines.
func TestLazyConnSetsFewDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, far, counts := lazyPipe(t)
		one := make([]byte, 1)
		for range 1000 {
			for _, d := range []time.Duration{2 * time.Minute, 5 * time.Second, 8 * time.Second, 0} {
				at := time.Time{}
				if d > 0 {
					at = time.Now().Add(d)
				}
				if err := errors.Join(c.SetReadDeadline(at), c.SetWriteDeadline(at)); err != nil {
					t.Fatal(err)
				}
			}
			go func() { _, _ = far.Write(one) }()
			if _, err := c.Read(one); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if counts.moves > 20 {
			t.Errorf("got %d deadlines set on the socket in 10 seconds of 1000 requests, want at most 20", counts.moves)
		}
	})
}
