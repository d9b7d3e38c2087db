package wire_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/store/redisstore/internal/wire"
)

// A pipe has no buffer: a write on one end waits until the other end reads, as it
// does on a connection whose server has stood still for long.

// pipe returns a direct, and the server's end of its connection.
func pipe(t *testing.T) (wire.Direct, *server) {
	t.Helper()
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close(); there.Close() })
	return wire.NewDirect(here), &server{conn: there, in: bufio.NewReader(there)}
}

type server struct {
	conn net.Conn
	in   *bufio.Reader
}

// read reads a command without keys, and returns the hash of its program.
func (s *server) read(t *testing.T) string {
	t.Helper()
	var words []string
	for range 7 {
		line, err := s.in.ReadString('\n')
		if err != nil {
			t.Errorf("the server reads: %v", err)
		}
		words = append(words, strings.TrimSpace(line))
	}
	return words[4]
}

func (s *server) write(t *testing.T, reply string) {
	t.Helper()
	if _, err := io.WriteString(s.conn, reply); err != nil {
		t.Errorf("the server writes: %v", err)
	}
}

// answer reads a command and answers with the hash of its program.
func (s *server) answer(t *testing.T) {
	t.Helper()
	s.write(t, "+"+s.read(t)+"\r\n")
}

// still makes sure that d can be used: it is not lost, and has no reply of others.
func still(t *testing.T, d wire.Direct, s *server) {
	t.Helper()
	synctest.Wait()
	if d.Lost() || !d.Take() {
		t.Fatal("the connection is closed, or in use")
	}
	go s.answer(t)
	if reply, _, err := d.Eval(t.Context(), "next"); reply != "next" || err != nil {
		t.Errorf("the next caller: got %q and error %v, want its own reply", reply, err)
	}
}

// A caller whose time is over before the server has read anything closes nothing:
// whether the time was over before the write, or while it waited.
func TestNothingIsWritten(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]time.Duration{"over before the write": 2, "over during the write": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d, s := pipe(t)
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				time.Sleep(before * time.Millisecond)
				d.Take()
				if _, sent, err := d.Eval(ctx, "late"); sent || err == nil {
					t.Errorf("got sent=%v and error %v, want an error of a command that was not sent", sent, err)
				}
				still(t, d, s)
			})
		})
	}
}

// A caller who leaves when its command was written leaves the reply to the direct.
func TestReplyOfNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, s := pipe(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		go func() {
			sha := s.read(t)
			time.Sleep(time.Second)
			s.write(t, "+"+sha+"\r\n")
		}()
		d.Take()
		_, sent, err := d.Eval(ctx, "late")
		if !sent || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got sent=%v and error %v, want %v of a command that was sent", sent, err, context.DeadlineExceeded)
		}
		if d.Take() {
			t.Error("the direct is free before the reply is there")
		}
		time.Sleep(2 * time.Second)
		still(t, d, s)
	})
}

// A command that was written in part ends the connection: the server would take the
// next one for the rest of it. The server has not got the command.
func TestPartIsWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, s := pipe(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		go func() { _, _ = s.conn.Read(make([]byte, 5)) }()
		d.Take()
		if _, sent, err := d.Eval(ctx, "late"); sent || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got sent=%v and error %v, want %v of a command that was not sent", sent, err, os.ErrDeadlineExceeded)
		}
		if !d.Lost() {
			t.Error("the connection is open")
		}
	})
}

// Of several commands the first may have got through when the write ends early: none
// of them may be sent again.
func TestPartOfATrainIsWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, s := pipe(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		go func() { _, _ = s.conn.Read(make([]byte, 5)) }()
		d.Take()
		if replies, sent, err := d.EvalAll(ctx, "a", "b"); !sent || err == nil || len(replies) > 0 {
			t.Errorf("got replies %q, sent=%v and error %v, want an error of commands that may have been sent", replies, sent, err)
		}
		if !d.Lost() {
			t.Error("the connection is open")
		}
	})
}

// The replies that are there in time are those of their steps. The others are left to
// the direct.
func TestRepliesOfATrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, s := pipe(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() {
			a, b, c := s.read(t), s.read(t), s.read(t)
			s.write(t, "+"+a+"\r\n$1\r")
			s.write(t, "\n"+b+"\r\n+")
			time.Sleep(2 * time.Second)
			s.write(t, c+"\r\n")
		}()
		d.Take()
		replies, sent, err := d.EvalAll(ctx, "a", "b", "c")
		if !sent || !errors.Is(err, context.DeadlineExceeded) || !slices.Equal(replies, []string{"a", "b"}) {
			t.Errorf("got replies %q, sent=%v and error %v, want those of a and b", replies, sent, err)
		}
		time.Sleep(2 * time.Second)
		still(t, d, s)
	})
}

// Bytes that are no reply end the connection.
func TestNoReply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, s := pipe(t)
		go func() {
			s.read(t)
			s.write(t, "HTTP/1.1 400 Bad Request\r\n")
		}()
		d.Take()
		if _, sent, err := d.Eval(t.Context(), "a"); !sent || err == nil {
			t.Errorf("got sent=%v and error %v, want an error", sent, err)
		}
		if !d.Lost() {
			t.Error("the connection is open")
		}
	})
}

// A direct that is in use when a link is lost may be newer than the link: its caller
// gets the reply. Then it is closed.
func TestDirectOutlivesALink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, s := pipe(t)
		k := wire.NewKeeper(func(wire.Change) {})
		k.Use(d)
		go func() {
			sha := s.read(t)
			k.Lose()
			k.Collect()
			time.Sleep(time.Second)
			s.write(t, "+"+sha+"\r\n")
		}()
		d.Take()
		if reply, _, err := d.Eval(t.Context(), "a"); reply != "a" || err != nil {
			t.Errorf("got %q and error %v, want the reply", reply, err)
		}
		time.Sleep(2 * time.Second)
		if !d.Lost() || d.Take() {
			t.Error("the connection is open after its last call")
		}
	})
}
