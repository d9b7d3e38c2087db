package datadir_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/store"
)

// A flush that works for long rests between, unless somebody waits for it, and not for
// longer than half of the interval.
func TestRests(t *testing.T) {
	t.Parallel()
	const keys, work = 30_000, time.Millisecond // for each operation of the disk
	for _, test := range []struct {
		name        string
		opts        []datadir.Option
		flush       func(t *testing.T, s *datadir.Store)
		least, most time.Duration // in which the flush rests
	}{
		{"by itself", nil, nil, 3 * time.Millisecond, 500 * time.Millisecond},
		{"at most half of the interval", []datadir.Option{datadir.WithInterval(6 * time.Millisecond)}, nil, 2 * time.Millisecond, 4 * time.Millisecond},
		{"a caller waits", nil, func(t *testing.T, s *datadir.Store) {
			if err := s.Flush(t.Context()); err != nil {
				t.Error(err)
			}
		}, 0, 0},
		{"a caller comes to wait", nil, func(t *testing.T, s *datadir.Store) {
			time.Sleep(time.Second + 3500*time.Microsecond)
			if err := s.Flush(t.Context()); err != nil {
				t.Error(err)
			}
		}, time.Millisecond, 3 * time.Millisecond},
		{"calls wait", []datadir.Option{datadir.WithSync(datadir.Always)}, nil, 0, 0},
		{"the store is closed", nil, func(t *testing.T, s *datadir.Store) {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				disk := datadir.NewDisk()
				s := mustOpen(t, disk, append([]datadir.Option{datadir.WithInterval(time.Second)}, test.opts...)...)
				defer s.Close()
				var done atomic.Int64
				disk.SetPause(func() { done.Add(1); time.Sleep(work) })
				for key := range keys { // not calls of s, which would wait
					if _, err := one(t.Context(), s.Memory(), store.Take, space, ever, strconv.Itoa(key), "", 1); err != nil {
						t.Fatal(err)
					}
				}
				if test.flush != nil {
					test.flush(t, s)
				} else {
					time.Sleep(2 * time.Second)
				}
				st := s.Stats()
				if rested := st.FlushTime - time.Duration(done.Load())*work; rested < test.least || rested > test.most {
					t.Errorf("got %v of rest in %d flushes, want %v to %v", rested, st.Flushes, test.least, test.most)
				}
			})
		})
	}
}
