package grpcserver

import (
	"net"
	"testing"
)

// What a closed connection has counts until its calls have ended. Others are not closed
// for it, unless they have more than a few calls themselves.
func TestOthersAreNotToBlame(t *testing.T) {
	b := &inbox{most: 1 << 20}
	arrive := func() *guest {
		conn, client := net.Pipe()
		t.Cleanup(func() { _ = client.Close() })
		g := &guest{inbox: b, conn: conn}
		b.enter(g)
		return g
	}
	attacker, other, second := arrive(), arrive(), arrive()
	attacker.begin()
	attacker.add(b.most + 1)
	if !attacker.gone.Load() || b.total.Load() <= b.most {
		t.Fatalf("got %t, %d: want the attacker gone and its data still counted", attacker.gone.Load(), b.total.Load())
	}
	for range 3 {
		other.begin()
		other.add(waiting)
	}
	if other.gone.Load() {
		t.Error("the connection of three calls was closed")
	}
	second.begin()
	second.add(ample + 1)
	if !second.gone.Load() || other.gone.Load() {
		t.Errorf("got %t, %t: want the second attacker gone, and only it", second.gone.Load(), other.gone.Load())
	}
	attacker.end()
	second.end()
	if want := int64(3 * waiting); b.total.Load() != want {
		t.Errorf("got %d bytes in the inbox, want %d", b.total.Load(), want)
	}
}
