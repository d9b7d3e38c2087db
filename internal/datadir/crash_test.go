package datadir_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

var (
	ever  = window.MustCompile(window.Limit{Quota: window.MaxHits, Window: window.Ever()})
	space = store.NewSpace("", "crash", "crash", 0)
	soon  = datadir.WithInterval(time.Millisecond)
)

// ledger notes when the hits of each key were admitted.
type ledger struct {
	mu   sync.Mutex
	sum  int
	at   int           // the sum at which reached is closed
	done chan struct{} // or nil
	hits [keysUsed][]time.Time
}

const keysUsed = 40

func (l *ledger) add(key int, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hits[key] = append(l.hits[key], at)
	if l.sum++; l.sum == l.at {
		close(l.done)
	}
}

// before returns how many hits of key were acknowledged before at.
func (l *ledger) before(key int, at time.Time) (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, hit := range l.hits[key] {
		if hit.Before(at) {
			n++
		}
	}
	return n
}

func (l *ledger) all(key int) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.hits[key]))
}

func mustOpen(t testing.TB, d *datadir.Disk, opts ...datadir.Option) *datadir.Store {
	t.Helper()
	s, err := datadir.Open("", append([]datadir.Option{datadir.WithDisk(d), soon}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func usedOf(t testing.TB, s *datadir.Store, key int) int64 {
	t.Helper()
	r, err := s.Read(t.Context(), &store.Op{Space: space, Limit: ever, Key: fmt.Append(nil, key)})
	if err != nil {
		t.Fatal(err)
	}
	return r.Used
}

// load takes hits of random keys in four goroutines until stop is closed. begun is
// what was admitted at most, ended what was answered.
func load(t testing.TB, s *datadir.Store, begun, ended *ledger, seed uint64, stop chan struct{}) *sync.WaitGroup {
	var group sync.WaitGroup
	for g := range uint64(4) {
		group.Go(func() {
			r := rand.New(rand.NewPCG(seed, g))
			for {
				select {
				case <-stop:
					return
				default:
				}
				key := r.IntN(keysUsed)
				begun.add(key, time.Now())
				if _, err := one(t.Context(), s, store.Take, space, ever, fmt.Sprint(key), "", 1); err != nil {
					t.Error(err)
					return
				}
				ended.add(key, time.Now())
			}
		})
	}
	return &group
}

// A process that is killed, or a machine that loses power, under load: the next
// process has of each key at least the hits that were answered before the last flush
// began, with Always all that were answered, and at most those that were asked for.
func TestKill(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		sync  datadir.Sync
		power bool
	}{
		{datadir.Interval, false}, {datadir.OS, false}, {datadir.Always, false},
		{datadir.Interval, true}, {datadir.Always, true},
	} {
		t.Run(fmt.Sprintf("%s/power=%v", test.sync, test.power), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			for round := range uint64(10) {
				disk := datadir.NewDisk()
				s := mustOpen(t, disk, datadir.WithSync(test.sync))
				begun, ended := ledger{}, ledger{at: 1 + r.IntN(2000), done: make(chan struct{})}
				stop := make(chan struct{})
				group := load(t, s, &begun, &ended, round, stop)
				<-ended.done
				var least, most [keysUsed]int64
				flushed := time.Now().Add(-s.Stats().Lag)
				if test.sync == datadir.Always {
					flushed = time.Now()
				}
				for key := range least {
					least[key] = ended.before(key, flushed)
				}
				after := disk.Clone
				if test.power {
					after = func() *datadir.Disk { return disk.PowerLoss(r) }
				}
				left := after()
				for key := range most {
					most[key] = begun.all(key)
				}
				close(stop)
				group.Wait()
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				next := mustOpen(t, left)
				for key := range least {
					if got := usedOf(t, next, key); got < least[key] || got > most[key] {
						t.Errorf("round %d, key %d: got %d, want %d to %d", round, key, got, least[key], most[key])
					}
				}
				if err := next.Close(); err != nil {
					t.Fatal(err)
				}
				again := mustOpen(t, disk) // the one that ended in order
				for key := range most {
					if got, want := usedOf(t, again, key), ended.all(key); got != want {
						t.Errorf("round %d, key %d after an orderly end: got %d, want %d", round, key, got, want)
					}
				}
				again.Close()
			}
		})
	}
}

// fill returns a disk with the counters of a few flushes, whose keys have been taken
// once in each of them, and the instants at which those ended.
func fill(t testing.TB, keys, flushes int, opts ...datadir.Option) *datadir.Disk {
	t.Helper()
	disk := datadir.NewDisk()
	for range flushes {
		s := mustOpen(t, disk, append(opts, datadir.WithInterval(time.Hour))...)
		for key := range keys {
			if _, err := one(t.Context(), s, store.Take, space, ever, fmt.Sprint(key), "", 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return disk
}

// Garbage of any kind in a directory refuses no start.
func FuzzAnyFile(f *testing.F) {
	disk := fill(f, 2, 2)
	f.Add(disk.Data(disk.Names()[0]), uint16(600), []byte("x"))
	f.Add([]byte{}, uint16(0), []byte{})
	f.Fuzz(func(t *testing.T, data []byte, at uint16, put []byte) {
		copy(data[min(int(at), len(data)):], put)
		d := datadir.NewDisk()
		d.Put("0000000001.log", data)
		s, err := datadir.Open("", datadir.WithDisk(d))
		if err != nil {
			return // a later version
		}
		usedOf(t, s, 0)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
