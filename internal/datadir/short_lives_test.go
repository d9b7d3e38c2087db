package datadir_test

import (
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
