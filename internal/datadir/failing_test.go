package datadir_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/store"
)

// told collects events.
type told struct {
	mu     sync.Mutex
	events []datadir.Event
}

func (l *told) add(e datadir.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// kinds returns the kinds of the events, without the first, which is Loaded.
func (l *told) kinds() (kinds []datadir.EventKind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events[1:] {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// want fails the test if the events after the first one are not of the kinds.
func (l *told) want(t *testing.T, kinds ...datadir.EventKind) {
	t.Helper()
	if got := l.kinds(); !slices.Equal(got, kinds) {
		t.Errorf("got events %v, want %v", got, kinds)
	}
}

// take takes a hit of each key from 0 to keys-1.
func take(t testing.TB, s *datadir.Store, keys int) {
	t.Helper()
	for key := range keys {
		if _, err := one(t.Context(), s, store.Take, space, ever, fmt.Sprint(key), "", 1); err != nil {
			t.Fatal(err)
		}
	}
}

// wants fails the test if not exactly want hits of each key from 0 to keys-1 are in
// what a kill now leaves behind.
func wants(t testing.TB, d *datadir.Disk, keys int, want int64) {
	t.Helper()
	d = d.Clone()
	d.SetFail(nil)
	d.SetRoom(0)
	s := mustOpen(t, d)
	defer s.Close()
	for key := range keys {
		if got := usedOf(t, s, key); got != want {
			t.Fatalf("key %d after a restart: got %d, want %d", key, got, want)
		}
	}
}

var errDisk = errors.New("input/output error")

// failing makes an operation of a disk fail.
func failing(operation string) func(op, name string) error {
	return func(op, _ string) error {
		if op == operation {
			return errDisk
		}
		return nil
	}
}

// Whatever operation fails, calls are answered, what is on the disk stays, and
// what was counted meanwhile is on the disk as soon as it works again. One line says
// that it fails, and one that it works.
func TestFailures(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"write", "short", "sync", "truncate", "full", "create", "syncdir"} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const keys = 100
				disk := datadir.NewDisk()
				var lines told
				s := mustOpen(t, disk, datadir.WithInterval(time.Second), datadir.WithEvents(lines.add))
				take(t, s, keys)
				time.Sleep(2 * time.Second)
				wants(t, disk, keys, 1)

				fail := func(op, _ string) error {
					switch {
					case op == operation, operation == "truncate" && op == "write", (operation == "create" || operation == "syncdir") && op == "sync":
						return errDisk
					case operation == "short" && op == "write":
						return datadir.ErrShort
					}
					return nil
				}
				if operation == "full" {
					disk.SetRoom(disk.Size() + 10)
				} else {
					disk.SetFail(fail)
				}
				for range 5 {
					take(t, s, keys)
					time.Sleep(3 * time.Second)
					if operation == "sync" {
						continue // the disk may have it, or not
					}
					left := disk.Clone()
					if got := least(t, left, keys); got < 1 {
						t.Fatalf("while it fails, after a kill: got %d, want at least 1", got)
					}
				}
				if got := usedOf(t, s, 0); got != 6 {
					t.Fatalf("while it fails: got %d used, want 6", got)
				}
				if st := s.Stats(); !st.Failing || st.Failures == 0 || st.Lag < 10*time.Second {
					t.Errorf("got %+v, want failures and a lag", st)
				}
				disk.SetFail(nil)
				disk.SetRoom(0)
				time.Sleep(5 * time.Second)
				wants(t, disk, keys, 6)
				if st := s.Stats(); st.Failing || st.Lag > 2*time.Second {
					t.Errorf("got %+v, want no failure any more", st)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				lines.want(t, datadir.Failing, datadir.Writing)
				wants(t, disk, keys, 6)
				if n := len(disk.Names()); n != 1 {
					t.Errorf("got files %v, want one", disk.Names())
				}
			})
		})
	}
}

// least returns the smallest count of the keys after a start on d.
func least(t testing.TB, d *datadir.Disk, keys int) int64 {
	t.Helper()
	s := mustOpen(t, d)
	defer s.Close()
	n := usedOf(t, s, 0)
	for key := range keys {
		n = min(n, usedOf(t, s, key))
	}
	return n
}

// Operations fail at random for a while. After a power loss at the end, every key has
// at least what it had when the last flush had succeeded.
func TestRandomFailures(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			const keys = 30
			r := rand.New(rand.NewPCG(seed, 9))
			disk := datadir.NewDisk()
			s := mustOpen(t, disk, datadir.WithInterval(time.Second))
			good := int64(0)
			rate := 2 + r.IntN(8)
			chance := rand.New(rand.NewPCG(seed, 10)) // used under the disk's lock
			disk.SetFail(func(string, string) error {
				if chance.IntN(rate) == 0 {
					return []error{errDisk, datadir.ErrShort}[chance.IntN(2)]
				}
				return nil
			})
			for step := range int64(60) {
				take(t, s, keys)
				time.Sleep(2 * time.Second)
				if st := s.Stats(); !st.Failing && st.Lag <= time.Second {
					good = step + 1
				}
				if r.IntN(10) == 0 {
					left := disk.PowerLoss(r)
					if got := least(t, left, keys); got < good || got > step+1 {
						t.Fatalf("seed %d, step %d: got %d, want %d to %d", seed, step, got, good, step+1)
					}
				}
			}
			disk.SetFail(nil)
			time.Sleep(5 * time.Second)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			wants(t, disk, keys, 60)
		})
	}
}

// A file that another program removes or changes is noticed and written again, and one line
// says so.
func TestFileIsGone(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]func(d *datadir.Disk, name string){
		"removed":  func(d *datadir.Disk, name string) { d.Drop(name) },
		"cut":      func(d *datadir.Disk, name string) { d.Put(name, nil) },
		"restored": func(d *datadir.Disk, name string) { d.Put(name, d.Data(name)[:600]) },
	} {
		synctest.Test(t, func(t *testing.T) {
			const keys = 100
			disk := datadir.NewDisk()
			var lines told
			s := mustOpen(t, disk, datadir.WithInterval(time.Second), datadir.WithEvents(lines.add))
			take(t, s, keys)
			time.Sleep(2 * time.Second)
			gone(disk, disk.Names()[0])
			time.Sleep(3 * time.Second)
			wants(t, disk, keys, 1)
			take(t, s, keys)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			wants(t, disk, keys, 2)
			lines.want(t, datadir.Failing, datadir.Writing)
			if n := len(disk.Names()); n != 1 {
				t.Errorf("%s: got files %v, want one", name, disk.Names())
			}
		})
	}
}

// What a removed file had, what was not synced, and a batch that was never written are made up
// for before writing counts as working again, however many keys there are. From then on neither
// an orderly end nor a loss of power loses anything.
func TestWholeWhenWritingWorksAgain(t *testing.T) {
	t.Parallel()
	const keys = 200_000 // several times as many as a flush writes of a compaction
	for name, trouble := range map[string]func(t *testing.T, s *datadir.Store, disk *datadir.Disk){
		"removed": func(_ *testing.T, _ *datadir.Store, disk *datadir.Disk) {
			for _, name := range disk.Names() {
				disk.Drop(name)
			}
		},
		"unsynced": func(t *testing.T, s *datadir.Store, disk *datadir.Disk) {
			disk.SetFail(failing("sync"))
			take(t, s, keys)
			time.Sleep(1500 * time.Millisecond)
			disk.SetFail(nil)
		},
		"rotated": func(t *testing.T, s *datadir.Store, disk *datadir.Disk) {
			disk.SetFail(failing("write"))
			s.PutBlob("sent", nil)
			time.Sleep(1500 * time.Millisecond)
			disk.SetFail(nil)
			_ = s.RotateSecret(t.Context(), time.Hour) // the error is that of the last flush
		},
		"interrupted": interrupt,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				disk := datadir.NewDisk()
				var l told
				s := mustOpen(t, disk, datadir.WithInterval(time.Second), datadir.WithEvents(l.add))
				take(t, s, keys)
				s.PutBlob("sent", []byte("twice"))
				time.Sleep(time.Minute) // the first compaction ends
				trouble(t, s, disk)
				for range 1000 {
					if slices.Contains(l.kinds(), datadir.Writing) {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				want := usedOf(t, s, 0)
				killed := disk.PowerLoss(rand.New(rand.NewPCG(1, 2)))
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				wants(t, disk, keys, want)
				wants(t, killed, keys, want)
				if name == "rotated" {
					next := mustOpen(t, killed)
					defer next.Close()
					if got := next.Blob("sent"); len(got) > 0 {
						t.Errorf("got the blob %q, which was dropped", got)
					}
				}
			})
		})
	}
}

// interrupt makes a write fail after some of the keys that have changed were visited, and then changes
// all keys again.
func interrupt(t *testing.T, s *datadir.Store, disk *datadir.Disk) {
	t.Helper()
	const keys = 200_000
	time.Sleep(1500 * time.Millisecond) // between two flushes
	disk.SetFail(failing("write"))
	take(t, s, keys)
	time.Sleep(time.Second)
	take(t, s, keys)
	if s.Memory().Journal().Overflowed() {
		t.Error("got an overflow, after which all keys are written anyway")
	}
	disk.SetFail(nil)
}

// An orderly end loses nothing, also if its flush is the first one that works again.
func TestCloseAfterFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := datadir.NewDisk()
		s := mustOpen(t, disk, datadir.WithInterval(time.Second))
		interrupt(t, s, disk)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		wants(t, disk, 200_000, 2)
	})
}

// A directory in which no file can be made does not let the last file grow without end, and
// one line says what fails.
func TestNoNewFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const keys = 20_000
		disk := datadir.NewDisk()
		var lines told
		s := mustOpen(t, disk, datadir.WithInterval(time.Second), datadir.WithEvents(lines.add))
		take(t, s, keys)
		time.Sleep(2 * time.Second)
		disk.SetFail(failing("create"))
		for range 60 {
			take(t, s, keys)
			time.Sleep(1100 * time.Millisecond)
		}
		if size, live := disk.Size(), s.Stats().Live; size > 4*live+16<<20 {
			t.Errorf("got %d bytes with %d for the keys, want at most four times as many and 16 MiB", size, live)
		}
		lines.want(t, datadir.Failing)
		disk.SetFail(nil)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		wants(t, disk, keys, 61)
	})
}

// The last key of a space is forgotten while the disk fails, and nothing is counted there for
// minutes. The next process does not know the key either.
func TestForgottenWhileFailing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := datadir.NewDisk()
		s := mustOpen(t, disk, datadir.WithInterval(time.Second))
		take(t, s, 1)
		time.Sleep(2 * time.Second)
		disk.SetFail(failing("write"))
		other := store.NewSpace("", "other", "other", 0)
		for second := range 300 {
			if _, err := one(t.Context(), s, store.Take, other, ever, "0", "", 1); err != nil {
				t.Fatal(err)
			}
			if second == 10 { // a batch that failed waits
				if err := s.Forget(t.Context(), &store.Op{Space: space, Limit: ever, Key: []byte("0")}); err != nil {
					t.Fatal(err)
				}
			}
			for range 200 {
				s.Memory().Sweep(1000)
			}
			time.Sleep(time.Second)
		}
		disk.SetFail(nil)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		wants(t, disk, 1, 0)
	})
}

// Calls that wait for a disk do not when it hangs, and wait again afterwards.
func TestHangingDiskIsWaitedForBriefly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := datadir.NewDisk()
		var lines told
		s := mustOpen(t, disk, datadir.WithSync(datadir.Always), datadir.WithEvents(lines.add))
		slow := func(d time.Duration) { disk.SetPause(func() { time.Sleep(d) }) }
		for _, c := range []struct{ pause, before, most time.Duration }{
			{time.Second, 0, 5 * time.Second}, {time.Minute, 0, 10 * time.Second}, {time.Minute, 0, 0}, {0, 5 * time.Minute, time.Second},
		} {
			slow(c.pause)
			time.Sleep(c.before)
			begun := time.Now()
			take(t, s, 1)
			if took := time.Since(begun); took > c.most || c.pause == time.Second && took < c.pause {
				t.Errorf("a disk that needs %v: the call took %v, want at most %v", c.pause, took, c.most)
			}
			if failing := s.Stats().Failing; failing != (c.pause == time.Minute) {
				t.Errorf("a disk that needs %v: got failing %v", c.pause, failing)
			}
		}
		slow(10 * time.Second) // the last flush may take its time
		s.Close()
		lines.want(t, datadir.Failing, datadir.Writing)
		wants(t, disk, 1, 4)
	})
}

// A disk that hangs holds up no call.
func TestHangingDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := datadir.NewDisk()
		s := mustOpen(t, disk, datadir.WithInterval(time.Second))
		disk.SetPause(func() { time.Sleep(time.Minute) })
		for range 30 {
			take(t, s, 10)
			time.Sleep(time.Second)
		}
		if got := usedOf(t, s, 0); got != 30 {
			t.Errorf("got %d used, want 30", got)
		}
		if lag := s.Stats().Lag; lag < 20*time.Second {
			t.Errorf("got a lag of %v, want more than 20s", lag)
		}
		disk.SetPause(nil)
		s.Close()
		wants(t, disk, 10, 30)
	})
}

// Files take at most four times what the keys need, and 16 MiB, also while all keys
// change all the time; and the files that a compaction has made superfluous are removed.
func TestFilesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const keys = 20_000
		disk := datadir.NewDisk()
		s := mustOpen(t, disk, datadir.WithInterval(time.Second))
		most, live := int64(0), int64(0)
		for range 60 {
			take(t, s, keys)
			time.Sleep(1100 * time.Millisecond)
			most = max(most, disk.Size())
			live = max(live, s.Stats().Live)
		}
		st := s.Stats()
		if most > 4*live+16<<20 || live > 30*keys {
			t.Errorf("got %d bytes at most, with %d for the keys, want at most four times as many and 16 MiB", most, live)
		}
		if st.Compactions < 3 {
			t.Errorf("got %d compactions, want more", st.Compactions)
		}
		t.Logf("%d keys: %d bytes live, %d at most, %d compactions, %d bytes written for %d keys",
			keys, live, most, st.Compactions, st.WrittenBytes, st.WrittenKeys)
		s.Close()
		wants(t, disk, keys, 60)
	})
}

// So many keys change while the disk fails that the store forgets which. Later all are
// on the disk, and what was forgotten by callers is not.
func TestOverflow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const keys = 300_000
		disk := datadir.NewDisk()
		s := mustOpen(t, disk, datadir.WithInterval(time.Second), datadir.WithShards(8))
		take(t, s, keys)
		time.Sleep(10 * time.Second)
		disk.SetFail(failing("write"))
		take(t, s, keys)
		time.Sleep(2 * time.Second)
		take(t, s, keys)
		if !s.Memory().Journal().Overflowed() {
			t.Error("got no overflow, want one")
		}
		gone := &store.Op{Space: space, Limit: ever, Key: []byte("7")}
		if err := s.Forget(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		disk.SetFail(nil)
		time.Sleep(30 * time.Second)
		next := mustOpen(t, disk.Clone())
		defer next.Close()
		for key := range keys {
			want := int64(3)
			if key == 7 {
				want = 0
			}
			if got := usedOf(t, next, key); got != want {
				t.Fatalf("key %d: got %d, want %d", key, got, want)
			}
		}
		s.Close()
	})
}

// A damaged file is kept under another name when it is not needed any more.
func TestDamagedFileIsKept(t *testing.T) {
	t.Parallel()
	disk := fill(t, 3, 4)
	name := disk.Names()[0]
	data := disk.Data(name)
	data[len(data)/2] ^= 1
	disk.Put(name, data)
	var lines told
	s := mustOpen(t, disk, datadir.WithEvents(lines.add))
	if n := s.Stats().Damaged; n != 1 {
		t.Errorf("got %d damaged, want 1", n)
	}
	s.Close()
	if got, want := strings.Join(disk.Names(), " "), name+".damaged 0000000002.log"; got != want {
		t.Errorf("got files %s, want %s", got, want)
	}
	if got := string(disk.Data(name + ".damaged")); got != string(data) {
		t.Error("the damaged file has changed")
	}
}

// A compaction that fails, at whatever operation, leaves the directory as it was, so that it takes
// no space on a full disk.
func TestCompactFails(t *testing.T) {
	t.Parallel()
	disk := fill(t, 20_000, 2)
	names, size := disk.Names(), disk.Size()
	for _, operation := range []string{"create", "write", "sync", "syncdir", "full"} {
		if operation == "full" {
			disk.SetRoom(size + 200_000)
		} else {
			disk.SetFail(failing(operation))
		}
		if err := datadir.CompactOf(disk); err == nil {
			t.Errorf("%s: got no error", operation)
		}
		disk.SetFail(nil)
		disk.SetRoom(0)
		if got := disk.Names(); !slices.Equal(got, names) || disk.Size() != size {
			t.Errorf("%s: got files %v of %d bytes, want %v of %d", operation, got, disk.Size(), names, size)
		}
	}
	wants(t, disk, 20_000, 2)
}
