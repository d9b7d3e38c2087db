//go:build !race

// The race detector makes sync.Pool forget at random, so this runs without it.

package httpapi_test

import "testing"

func TestTakeAllocatesNothing(t *testing.T) {
	k := newTaker(newBench(t, posts).api)
	if n := testing.AllocsPerRun(1000, func() { k.take(takeBody) }); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
	if k.answer.status != 0 || k.answer.length == 0 {
		t.Errorf("got status %d and %d bytes, want a decision", k.answer.status, k.answer.length)
	}
}
