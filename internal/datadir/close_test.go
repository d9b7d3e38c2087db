package datadir_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// What a call counts while the store is being closed is on the disk, or the call returns ErrClosed: a call that
// began before and counts during the last flush, and one that begins then.
func TestCloseInUse(t *testing.T) {
	t.Parallel()
	for _, mode := range []datadir.Sync{datadir.Always, datadir.Interval} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { closeInUse(t, mode) })
		})
	}
}

func closeInUse(t *testing.T, mode datadir.Sync) {
	disk := datadir.NewDisk()
	var halts atomic.Bool // the next call, when it reads the clock
	goOn := make(chan struct{})
	clock := func() window.Instant {
		if halts.Swap(false) {
			<-goOn
		}
		return window.At(time.Now())
	}
	s := mustOpen(t, disk, datadir.WithSync(mode), datadir.WithInterval(time.Hour), datadir.WithClock(clock))
	var calls sync.WaitGroup
	var counted atomic.Int64
	call := func() {
		_, err := one(t.Context(), s, store.Take, space, ever, "0", "", 1)
		if err == nil {
			counted.Add(1)
		} else if !errors.Is(err, store.ErrClosed) {
			t.Errorf("got error %v, want %v", err, store.ErrClosed)
		}
	}
	call()
	halts.Store(true)
	calls.Go(call)
	synctest.Wait()
	disk.SetPause(func() { time.Sleep(time.Second) })
	calls.Go(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	time.Sleep(time.Second / 2) // the last flush has read what has changed, and writes it
	close(goOn)
	calls.Go(call)
	calls.Wait()
	wants(t, disk, 1, counted.Load())
}
