package datadir_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/datadir"
)

// Processes that end soon after their start, in order or by a kill, do not add files without end,
// although one flush does not write all keys.
func TestShortLives(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const keys = 150_000
			disk := fill(t, keys, 1)
			data := disk.Data(disk.Names()[0])
			data[len(data)-1] ^= 1 // the last batch is torn, so that the next process begins a file
			disk.Put(disk.Names()[0], data)
			most := 0
			for range 10 {
				s := mustOpen(t, disk, datadir.WithInterval(time.Second), datadir.WithHurry(1))
				left := disk
				if killed {
					time.Sleep(1900 * time.Millisecond) // a flush
					left = disk.Clone()
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				disk = left
				most = max(most, len(disk.Names()))
			}
			if most > 6 {
				t.Errorf("killed %v: got %d files, want at most 6", killed, most)
			}
			wants(t, disk, keys, 1)
		})
	}
}

// Processes that are killed while they write all keys do not each leave a copy of them, and the
// first one that lives writes one file.
func TestKilledInCompactions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const keys = 60_000
		disk := fill(t, keys, 1)
		data := disk.Data(disk.Names()[0])
		data[len(data)-1] ^= 1
		disk.Put(disk.Names()[0], data)
		once := disk.Size()
		for range 20 {
			s := mustOpen(t, disk, datadir.WithInterval(time.Second))
			var killed atomic.Pointer[datadir.Disk]
			var writes atomic.Int64
			disk.SetPause(func() {
				if writes.Add(1) == 5 {
					killed.Store(disk.Clone())
				}
			})
			time.Sleep(2500 * time.Millisecond)
			left := killed.Load()
			if left == nil {
				left = disk.Clone()
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			disk = left
		}
		if got := disk.Size(); got > 5*once {
			t.Errorf("got %d bytes in %d files, want at most five times %d", got, len(disk.Names()), once)
		}
		wants(t, disk, keys, 1)
		s := mustOpen(t, disk, datadir.WithInterval(time.Second))
		time.Sleep(30 * time.Second)
		if got := disk.Size(); got > 2*once {
			t.Errorf("after a life of 30 s: got %d bytes in %d files, want at most twice %d", got, len(disk.Names()), once)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		wants(t, disk, keys, 1)
	})
}
