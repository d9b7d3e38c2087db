package grpcserver_test

import (
	"testing"
	"time"
)

// call makes a call of a method, with a message of one character.
func (f frames) call(stream uint32, method string) frames {
	return f.frame(1, 4, stream, head(method)).frame(0, 1, stream, append([]byte{0, 0, 0, 0, 3}, 0x0a, 1, 'x'))
}

// A connection whose client takes no answers is closed: one with the answer to a call that
// has ended, and one with a stream that waits to send. Clients that have nothing to take
// are not late.
func TestAnswersNotTaken(t *testing.T) {
	t.Parallel()
	s, path, conn, shed := pipe(t, 1<<20)
	if _, err := say(t.Context(), conn, "hello"); err != nil {
		t.Fatal(err)
	}
	talk := quiet(t, conn)
	// The window of each stream is 0: nothing of a message can be sent.
	closed := frames{}.frame(4, 0, 0, []byte{0, 4, 0, 0, 0, 0})
	unary := attack(t, path, closed.call(1, "Say"))
	many := attack(t, path, closed.call(1, "Flood"))
	for now, end := time.Now(), time.Now().Add(20*time.Second); shed.Load() < 2; time.Sleep(time.Millisecond) {
		if s.Late(now); time.Now().After(end) {
			t.Fatalf("got %d connections shed, want two", shed.Load())
		}
		now = now.Add(time.Second)
	}
	<-unary
	<-many
	talk()
	if _, err := say(t.Context(), conn, "hello"); err != nil {
		t.Error(err)
	}
}
