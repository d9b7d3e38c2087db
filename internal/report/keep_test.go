package report_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/report"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// sideStore is a side store in memory, which writes when a test asks it to.
type sideStore struct {
	blobs   map[string][]byte // guarded by mu, as unsaved
	changed func(func(string, []byte))
	full    atomic.Bool // it cannot write
	failing atomic.Bool // it asks for what has changed, and cannot write that
	mu      sync.Mutex
	unsaved map[string][]byte
	puts    atomic.Int64 // how often a blob was written or dropped

	flushing func() // not nil: called by Flush
}

func (p *sideStore) Loaded() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func (p *sideStore) Claim(prefix string, found func(string, []byte)) bool {
	for name, data := range maps.Clone(p.blobs) {
		if strings.HasPrefix(name, prefix) {
			found(name, data)
		}
	}
	return true
}

func (p *sideStore) Follow(changed func(func(string, []byte))) (end func()) {
	p.changed = changed
	return p.write
}

func (p *sideStore) write() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.full.Load() {
		return
	}
	if p.unsaved == nil {
		p.unsaved = make(map[string][]byte)
	}
	p.changed(func(name string, data []byte) {
		p.puts.Add(1)
		p.unsaved[name] = bytes.Clone(data)
	})
	if p.failing.Load() {
		return
	}
	maps.Copy(p.blobs, p.unsaved)
	maps.DeleteFunc(p.blobs, func(_ string, data []byte) bool { return len(data) == 0 })
	clear(p.unsaved)
}

func (p *sideStore) Flush(context.Context) error {
	if p.flushing != nil {
		p.flushing()
	}
	if p.full.Load() {
		return errors.New("full")
	}
	if p.write(); p.failing.Load() {
		return errors.New("failing")
	}
	return nil
}
func (p *sideStore) Waits() bool         { return false }
func (p *sideStore) Now() window.Instant { return window.At(time.Now()) }

// left returns the number of blobs.
func (p *sideStore) left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.blobs)
}

// pendingBlobs returns blobs of entries of several kinds.
func pendingBlobs() [][]byte {
	p := &sideStore{blobs: map[string][]byte{}}
	f := newFar()
	f.gone("circuit-open")
	r := report.New(f, p)
	berlin := time.FixedZone("Berlin", 3600)
	for i, l := range []window.Limit{
		{Quota: 50, Window: window.Sliding(time.Hour)},
		{Quota: 5, Measure: window.Distinct, Window: window.Sliding(time.Hour)},
		{Quota: 1000, Measure: window.Sum, Window: window.Calendar(window.Day, berlin)},
		{Quota: 9, Window: window.Bucket(time.Minute, 3)},
	} {
		limit := window.MustCompile(l)
		r.Add(of(limit, strconv.Itoa(i), "member"), limit, 3)
	}
	holding := window.MustCompile(window.Limit{Quota: 50, Measure: window.Sum, Window: window.Sliding(time.Hour), Hold: time.Minute})
	r.Hold(holdOf(of(holding, "team", ""), 3), holding, 7, false)
	r.EndLater(holdOf(of(holding, "team", ""), 5), -1, true)
	r.EndUnproven(of(holding, "team", ""), 4, sealedUnder(0, 6))
	r.Hold(holdOf(of(holding, "sales", ""), 4), holding, 7, true)
	r.End(holdOf(of(holding, "sales", ""), 4), 5)
	plain := window.MustCompile(window.Limit{Quota: 50, Measure: window.Sum, Window: window.Sliding(time.Hour)})
	r.Add(of(plain, "sales", ""), plain, 2)
	r.Close()
	var all [][]byte
	for _, data := range p.blobs {
		all = append(all, data)
	}
	return all
}

// Every blob of this program can be read again, and has the same content then.
func TestBlobsComeBack(t *testing.T) {
	t.Parallel()
	blobs := pendingBlobs()
	if len(blobs) != 7 {
		t.Fatalf("got %d blobs, want 7", len(blobs))
	}
	for _, data := range blobs {
		if got := report.Again(data); !bytes.Equal(got, data) {
			t.Errorf("got  %q\nwant %q", got, data)
		}
		for n := range data {
			if report.Again(data[:n]) != nil {
				t.Errorf("%d of %d bytes: got an entry, want none", n, len(data))
			}
		}
	}
}

// Keys whose hits were given back take no memory while the side store cannot write, as with a
// directory that is read-only.
func TestSideStoreThatNeverWrites(t *testing.T) {
	f := newFar()
	f.gone("circuit-open")
	r := report.New(f, &sideStore{blobs: map[string][]byte{}})
	defer r.Close()
	limit := window.MustCompile(window.Limit{Quota: 50, Window: window.Sliding(time.Hour)})
	op := of(limit, "key", "")
	use := func(n int) (heap uint64) {
		for range n {
			r.Add(op, limit, 1)
			r.Sub(op, 1)
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := use(report.MaxKeys)
	if after := use(5 * report.MaxKeys); after > before+64<<20 {
		t.Errorf("got %d bytes more after %d further hits that were given back, want at most 64 MiB", after-before, 5*report.MaxKeys)
	}
}

// outage returns a reporter with a side store, both empty, and a store that is unavailable.
func outage(t *testing.T) (*far, *sideStore, *report.Reporter) {
	t.Helper()
	f, side := newFar(), &sideStore{blobs: map[string][]byte{}}
	f.gone("circuit-open")
	r := report.New(f, side)
	t.Cleanup(r.Close)
	synctest.Wait() // it has found no blobs
	return f, side, r
}

// While the side store cannot write, what it has saved is not sent, because the next process could send it
// again. All else is.
func TestReportsWithoutADisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, side, r := outage(t)
		r.Add(of(hourly, "saved", ""), hourly, 2)
		side.write()
		side.full.Store(true)
		r.Add(of(hourly, "ann", ""), hourly, 3)
		f.back()
		time.Sleep(5 * time.Second)
		wantStats(t, r, report.Stats{Pending: 1, Recorded: 3})
		side.full.Store(false)
		time.Sleep(2 * time.Second)
		wantStats(t, r, report.Stats{Recorded: 5})
		for key, want := range map[string]int64{"saved": 2, "ann": 3} {
			f.wants(t, of(hourly, key, ""), want)
		}
		if side.left() > 0 {
			t.Errorf("got %d blobs that are left, want none", side.left())
		}
	})
}

// While a store refuses what is recorded, as one that is full does, the blobs stay as they are, but for those of a few entries
// that are tried each second.
func TestBlobsWhileTheStoreRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, side, r := outage(t)
		for key := range 5000 {
			r.Add(in("", key), hourly, 1)
		}
		f.refuse.Store(true)
		f.back()
		time.Sleep(5 * time.Second)
		side.write()
		before := side.puts.Load()
		time.Sleep(time.Minute)
		side.write()
		if got := side.puts.Load() - before; got > 61*2*128 || side.left() != 5000 {
			t.Errorf("got %d writes of blobs in a minute, and %d blobs, want at most 256 a second and one of each key", got, side.left())
		}
		f.refuse.Store(false)
		time.Sleep(2 * time.Second)
		wantStats(t, r, report.Stats{Recorded: 5000})
		if side.left() > 0 {
			t.Errorf("got %d blobs that are left, want none", side.left())
		}
	})
}

// An entry whose blob could not be dropped is not sent, although the side store was told to drop it: the
// next process could send it again.
func TestReportsNothingThatIsStillSaved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, side, r := outage(t)
		r.Add(of(hourly, "saved", ""), hourly, 2)
		side.write()
		side.failing.Store(true)
		f.back()
		time.Sleep(5 * time.Second)
		wantStats(t, r, report.Stats{Pending: 1})
		side.failing.Store(false)
		time.Sleep(2 * time.Second)
		wantStats(t, r, report.Stats{Recorded: 2})
		if side.left() > 0 {
			t.Errorf("got %d blobs that are left, want none", side.left())
		}
	})
}

// Hits that were saved while older hits of their key were in flight are not sent with these before their blob
// is dropped.
func TestReportsNothingThatIsSavedWithNewerHits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, side, r := outage(t)
		r.Add(of(hourly, "ann", ""), hourly, 2)
		f.refuse.Store(true)
		first := true
		f.under = func() {
			if first {
				first = false
				r.Add(of(hourly, "ann", ""), hourly, 3)
				side.write()
				return
			}
			f.refuse.Store(false)
			if side.left() > 0 {
				t.Errorf("got %d blobs while their hits are sent, want none", side.left())
			}
		}
		f.back()
		time.Sleep(5 * time.Second)
		wantStats(t, r, report.Stats{Recorded: 5})
	})
}

// What a namespace left waiting before a restart has its room, and that of no other namespace, whichever Reporter has
// restored it.
func TestRoomAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, side, old := outage(t)
		for key := range report.MaxKeys {
			old.Add(in("full", key), hourly, 1)
		}
		old.Close()

		f := newFar()
		f.gone("circuit-open")
		r := report.New(f, side)
		defer r.Close()
		synctest.Wait()
		r.Add(in("other", 0), hourly, 1)
		r.Add(in("full", report.MaxKeys), hourly, 1)
		wantStats(t, r, report.Stats{Pending: report.MaxKeys + 1, Dropped: 1})

		f.back() // what is reported makes room
		time.Sleep(time.Minute)
		r.Add(in("full", report.MaxKeys), hourly, 1)
		time.Sleep(time.Minute)
		wantStats(t, r, report.Stats{Recorded: report.MaxKeys + 2, Dropped: 1})
	})
}

// What a later version of the program has left waiting counts as lost, and stays for that version.
func TestBlobsOfALaterVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, side, old := outage(t)
		old.Add(of(hourly, "ann", ""), hourly, 3)
		old.Close()
		later := maps.Clone(side.blobs)
		for name, data := range later {
			later[name] = append([]byte{data[0] + 1}, data[1:]...)
		}
		side.blobs = maps.Clone(later)

		f := newFar()
		r := report.New(f, side)
		synctest.Wait()
		wantStats(t, r, report.Stats{Lost: 1})
		r.Add(of(hourly, "bob", ""), hourly, 1)
		time.Sleep(5 * time.Second)
		r.Close()
		wantStats(t, r, report.Stats{Recorded: 1, Lost: 1})
		if !maps.EqualFunc(side.blobs, later, bytes.Equal) {
			t.Errorf("got the blobs %q, want %q", side.blobs, later)
		}
	})
}

// Of a key that is sent in parts, the side store has what is not sent yet, for the next process.
func TestReportsInParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit := window.MustCompile(window.Limit{Quota: 1000, Measure: window.Sum, Window: window.Sliding(time.Hour), Hold: time.Minute, MaxHolds: 300})
		f, side, r := outage(t)
		for i := range 300 {
			r.Hold(holdOf(of(limit, "team", ""), i), limit, 1, false)
		}
		r.Add(of(limit, "team", ""), limit, 5)
		side.write()
		left := &sideStore{}
		f.under = func() {
			if f.calls.Load() == 2*128 {
				left.blobs = maps.Clone(side.blobs)
			}
		}
		f.back()
		time.Sleep(2 * time.Second)
		wantStats(t, r, report.Stats{Recorded: 305})
		if side.left() > 0 {
			t.Errorf("got %d blobs that are left, want none", side.left())
		}
		other := newFar()
		next := report.New(other, left)
		defer next.Close()
		time.Sleep(2 * time.Second)
		wantStats(t, next, report.Stats{Recorded: 301 - 2*128})
	})
}

// A hold that the store may have, because the answer to its take was lost, counts there once. If it ends in the outage, it
// ends in the store, too, or counts there what it cost; so it does after a restart.
func TestHoldsThatTheStoreHas(t *testing.T) {
	t.Parallel()
	limit := window.MustCompile(window.Limit{Quota: 5000, Measure: window.Sum, Window: window.Sliding(time.Hour), Hold: time.Minute, Release: true})
	place := window.MustCompile(window.Limit{Quota: 20, Window: window.Held(time.Minute)})
	for _, restart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f, side, r := outage(t)
			var ops, places []*store.Op
			for i := range 8 {
				op, in := holdOf(of(limit, "team", ""), i), holdOf(of(place, "door", ""), i)
				if op.N, in.N = 100, 1; i < 4 {
					f.set(window.At(time.Now()))
					_ = store.Do(t.Context(), f.Store, store.Take, []store.Op{*op, *in})
				}
				r.Hold(op, limit, 100, true)
				r.Hold(in, place, 1, true)
				ops, places = append(ops, op), append(places, in)
			}
			f.wants(t, ops[0], 400)
			time.Sleep(30 * time.Second)
			for i, n := range []int64{7, 0} { // settled and cancelled
				for _, of := range [][]*store.Op{ops, places} {
					if !r.End(of[i], n) || !r.End(of[4+i], n) || r.End(of[i], n) {
						t.Error("want each end to find its hold once")
					}
				}
			}
			for _, op := range []*store.Op{ops[2], ops[6], places[2], places[6]} {
				op.Hold.Decided = window.At(time.Now())
				r.Renew(op)
			}
			if restart {
				r.Close()
				r = report.New(f, side)
				defer r.Close()
			}
			f.back()
			time.Sleep(time.Second)
			f.wants(t, ops[0], 7+100+100+7+100+100)
			f.wants(t, places[0], 4)
			time.Sleep(45 * time.Second) // those that were not renewed have ended
			f.wants(t, ops[0], 7+100+7+100)
			f.wants(t, places[0], 2)
		})
	}
}

// A hold that the store has had, and that another instance has ended, is not made anew as long as its end is marked. The mark
// also ends one that was made anew between the end and the mark.
func TestMarkedEnds(t *testing.T) {
	t.Parallel()
	place := window.MustCompile(window.Limit{Quota: 20, Window: window.Held(time.Hour)})
	for name, test := range map[string]struct {
		report, mark time.Duration
		want         int64
	}{
		"a mark":            {report: 5 * time.Minute, mark: 0, want: 0},
		"a mark that ended": {report: 15 * time.Minute, mark: 0, want: 1},
		"a late mark":       {report: 0, mark: 5 * time.Minute, want: 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, _, r := outage(t)
			op := holdOf(of(place, "door", ""), 0)
			r.Hold(op, place, 1, true)
			time.AfterFunc(test.report, f.back)
			time.AfterFunc(test.mark, func() {
				f.set(window.At(time.Now()))
				_ = f.Store.Do(t.Context(), []store.Call{report.MarkEnd(op, 0)})
			})
			time.Sleep(20 * time.Minute)
			if got := f.used(t, op); got != test.want {
				t.Errorf("%s: got %d places, want %d", name, got, test.want)
			}
		})
	}
}

// An end that is kept marks that hold which another instance has to report, also after a restart, and no other one.
func TestKeptEndsAreMarked(t *testing.T) {
	t.Parallel()
	limit := window.MustCompile(window.Limit{Quota: 5000, Measure: window.Sum, Window: window.Sliding(time.Hour), Hold: time.Hour})
	for _, elsewhere := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f, side, other := outage(t)
			op := holdOf(of(limit, "team", ""), 0)
			other.EndLater(op, 7, elsewhere)
			other.Close()
			f.back()
			other = report.New(f, side)
			defer other.Close()
			time.Sleep(time.Second)
			wantStats(t, other, report.Stats{})

			r := report.New(f, nil)
			defer r.Close()
			r.Hold(op, limit, 100, false)
			time.Sleep(time.Second)
			want := int64(100)
			if elsewhere {
				want = 7
			}
			f.wants(t, op, want)
			wantStats(t, r, report.Stats{Recorded: want})
		})
	}
}

// A hold that the store may have and that ends by itself before the report counts as one that the store does not have.
func TestHoldsThatTheStoreHasMature(t *testing.T) {
	t.Parallel()
	limit := window.MustCompile(window.Limit{Quota: 5000, Measure: window.Sum, Window: window.Sliding(time.Hour), Hold: time.Minute})
	synctest.Test(t, func(t *testing.T) {
		f, _, r := outage(t)
		ended := holdOf(of(limit, "team", ""), 1)
		r.Hold(holdOf(of(limit, "team", ""), 0), limit, 100, true)
		r.Hold(ended, limit, 100, true)
		r.End(ended, 7)
		time.Sleep(2 * time.Minute)
		f.back()
		time.Sleep(time.Second)
		wantStats(t, r, report.Stats{Recorded: 107})
	})
}

// A blob with any content is read or refused, and what is read has the same content when it
// is written again.
func FuzzBlob(f *testing.F) {
	for _, data := range pendingBlobs() {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if again := report.Again(data); again != nil && !bytes.Equal(report.Again(again), again) {
			t.Errorf("got another blob for %q", data)
		}
	})
}

// The end of a hold of the store that the store has not answered is sent until it does, also after a restart, and
// whether or not it has taken effect. No end is sent later than its hold can live.
func TestEndsThatTheStoreMissed(t *testing.T) {
	t.Parallel()
	limit := window.MustCompile(window.Limit{Quota: 5000, Measure: window.Sum, Window: window.Sliding(time.Hour), Hold: time.Minute, Release: true})
	place := window.MustCompile(window.Limit{Quota: 20, Window: window.Held(time.Minute)})
	for _, restart := range []bool{false, true} {
		for _, counted := range []bool{false, true} { // what has no answer
			synctest.Test(t, func(t *testing.T) {
				f, side, r := outage(t)
				var ops, places []*store.Op
				for i := range 4 {
					op, in := holdOf(of(limit, "team", ""), i), holdOf(of(place, "door", ""), i)
					op.N, in.N = 100, 1
					f.set(window.At(time.Now()))
					_ = store.Do(t.Context(), f.Store, store.Take, []store.Op{*op, *in})
					ops, places = append(ops, op), append(places, in)
				}
				for i, n := range []int64{7, 0, -1} { // settled, cancelled, and settled at what was held
					for _, of := range [][]*store.Op{ops, places} {
						r.EndLater(of[i], n, false)
						r.EndLater(of[i], 4000, false) // again
					}
				}
				wantStats(t, r, report.Stats{Pending: 2})
				if restart {
					r.Close()
					r = report.New(f, side)
					defer r.Close()
				}
				f.after = counted
				f.gone("late")
				time.Sleep(5 * time.Second)
				f.back()
				time.Sleep(time.Second)
				f.wants(t, ops[0], 7+100+100)
				f.wants(t, places[0], 1)
				wantStats(t, r, report.Stats{})
				f.gone("circuit-open")
				r.EndLater(ops[3], 50, false)
				time.Sleep(59 * time.Second)
				wantStats(t, r, report.Stats{Pending: 1})
				time.Sleep(2 * time.Second)
				wantStats(t, r, report.Stats{})
			})
		}
	}
}

// lateAfter is a store that goes away after a report.
type lateAfter struct{ *far }

func (s lateAfter) Do(ctx context.Context, calls []store.Call) error {
	err := s.far.Do(ctx, calls)
	if calls[0].Verb == store.Record {
		s.gone("late")
	}
	return err
}

// The end of a hold that has become the store's in a report under way is sent until the store answers. The caller's own
// call has found nothing there, and is answered after the report.
func TestEndsOfHoldsUnderWay(t *testing.T) {
	t.Parallel()
	limit := window.MustCompile(window.Limit{Quota: 5000, Measure: window.Sum, Window: window.Sliding(time.Hour), Hold: time.Hour})
	synctest.Test(t, func(t *testing.T) {
		f := newFar()
		r := report.New(lateAfter{f}, nil)
		defer r.Close()
		op := holdOf(of(limit, "team", ""), 1)
		f.under = func() { r.End(op, 7) }
		r.Hold(op, limit, 100, false)
		time.Sleep(5 * time.Second)
		r.Ended(op, false)
		f.wants(t, op, 100)
		f.back()
		time.Sleep(2 * time.Second)
		f.wants(t, op, 7)
		wantStats(t, r, report.Stats{Recorded: 100})
	})
}
