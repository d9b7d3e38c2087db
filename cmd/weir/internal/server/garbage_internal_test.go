package server

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

func TestGarbagePercent(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		alive uint64
		want  int
	}{
		{0, 800}, {1 << 20, 800}, {4 << 20, 800}, {8 << 20, 400}, {16 << 20, 200}, {32 << 20, 100}, {1 << 40, 100},
	} {
		if got := garbagePercent(tc.alive); got != tc.want {
			t.Errorf("%d bytes alive: got %d, want %d", tc.alive, got, tc.want)
		}
	}
}

// The collector has its default again when the service has ended. The test is not
// parallel, because it is about the whole process.
func TestSpareCollector(t *testing.T) {
	t.Setenv("GOGC", "")
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		go spareCollector(ctx)
		time.Sleep(time.Second / 2)
		if got := debug.SetGCPercent(100); got <= 100 {
			t.Errorf("got %d %%, want more: the test has a small heap", got)
		}
		// More is alive: the next collection lowers the percentage, and no second passes.
		debug.SetGCPercent(800)
		ballast := make([]byte, 128<<20)
		for got := 800; got > 100; {
			runtime.GC()
			got = debug.SetGCPercent(800)
		}
		runtime.KeepAlive(ballast)
		stop()
		synctest.Wait()
		if got := debug.SetGCPercent(100); got != 100 {
			t.Errorf("got %d %% at the end, want 100", got)
		}
	})
	t.Setenv("GOGC", "150")
	spareCollector(t.Context()) // returns at once
}
