package kept_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/kept"
	"github.com/weirhq/weir/cmd/weir/internal/stores"
	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
)

// view is what one instance knows of a register.
type view struct {
	kept.Follower
	mu      sync.Mutex
	entries map[string]string // guarded by mu
	loads   int               // guarded by mu
}

func follow(s kept.Store, name string) *view {
	v := &view{entries: map[string]string{}}
	v.Follower = kept.Follower{Store: s, Name: name, Apply: func(p kept.Page) {
		v.mu.Lock()
		defer v.mu.Unlock()
		if p.Again {
			v.entries = map[string]string{}
			v.loads++
		}
		for i, field := range p.Fields {
			if p.Values[i] == "" {
				delete(v.entries, field)
			} else {
				v.entries[field] = p.Values[i]
			}
		}
	}}
	return v
}

// known returns what v knows after reading the register.
func (v *view) known(t *testing.T) map[string]string {
	t.Helper()
	if err := v.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.entries)
}

// set makes v set a field.
func (v *view) set(t *testing.T, field, value string) {
	t.Helper()
	v.setAll(t, []string{field}, []string{value})
}

func (v *view) setAll(t *testing.T, fields, values []string) {
	t.Helper()
	if err := v.Change(t.Context(), "", func() ([]string, []string, error) { return fields, values, nil }); err != nil {
		t.Error(err)
	}
}

// places are the stores, and what makes each of them lose everything.
var places = map[string]func(t *testing.T) (s kept.Store, lose func()){
	"memory": func(*testing.T) (kept.Store, func()) { return kept.NewMemory(nil), nil },
	"redis": func(t *testing.T) (kept.Store, func()) {
		n := redistest.Server(t)
		return open(t, "redis://"+n.Addr()+"?timeout=20s"), func() { n.Must("FLUSHALL") }
	},
	"cluster": func(t *testing.T) (kept.Store, func()) {
		return open(t, "redis+cluster://"+redistest.Cluster(t, 3, 0).Addrs()+"?timeout=20s"), nil
	},
	"postgres": func(t *testing.T) (kept.Store, func()) {
		n := pgtest.Server(t)
		return open(t, n.URL("timeout=20s")), func() { n.Must("DELETE FROM weir_kept") }
	},
}

func open(t *testing.T, url string) kept.Store {
	at, err := stores.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	s, err := at.Open(t.Context(), stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStores(t *testing.T) {
	t.Parallel()
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, lose := place(t)
			t.Run("changes", func(t *testing.T) { changes(t, s) })
			t.Run("together", func(t *testing.T) { together(t, s) })
			t.Run("pages", func(t *testing.T) { pages(t, s) })
			if lose != nil {
				t.Run("lost", func(t *testing.T) { lost(t, s, lose) })
			}
		})
	}
}

// A change is made only from the version that it was computed from, and is what others read.
func changes(t *testing.T, s kept.Store) {
	ctx := t.Context()
	one, two := follow(s, "r"), follow(s, "r")
	if got := one.known(t); len(got) != 0 {
		t.Errorf("got %q of a register that is not there", got)
	}
	one.set(t, "a\x00{b}", "1")
	two.set(t, "b", "\xff")
	two.setAll(t, []string{"c", "d"}, []string{"3", "4"})
	one.set(t, "c", "")
	one.set(t, "never there", "")
	long := make([]byte, kept.MaxField) // that nothing makes shorter
	for i := range long {
		long[i] = byte(rand.Uint32())
	}
	one.set(t, string(long), "long")
	want := map[string]string{"a\x00{b}": "1", "b": "\xff", "d": "4", string(long): "long"}
	for i, v := range []*view{one, two, follow(s, "r")} {
		if got := v.known(t); !maps.Equal(got, want) {
			t.Errorf("view %d: got %q, want %q", i, got, want)
		}
	}
	_, _, at, _, err := s.Kept(ctx, "r", [2]int64{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, stale := range []int64{0, at[0] - 1, at[0] + 1} {
		if now, err := s.Keep(ctx, "r", stale, []string{"b"}, []string{"stale"}); err != nil || now != 0 {
			t.Errorf("version %d: got %d, %v, want no change", stale, now, err)
		}
	}
	if got := one.known(t); !maps.Equal(got, want) {
		t.Errorf("after stale changes: got %q, want %q", got, want)
	}
	if got := follow(s, "other").known(t); len(got) != 0 {
		t.Errorf("got %q of another register", got)
	}
}

// Of many that count up the same field no change is lost.
func together(t *testing.T, s kept.Store) {
	const views, turns = 4, 10
	var all sync.WaitGroup
	for range views {
		v := follow(s, "sum")
		all.Go(func() {
			for range turns {
				err := v.Change(t.Context(), "", func() ([]string, []string, error) {
					v.mu.Lock()
					defer v.mu.Unlock()
					return []string{"n"}, []string{v.entries["n"] + "x"}, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := len(follow(s, "sum").known(t)["n"]); got != views*turns {
		t.Errorf("got %d changes, want %d", got, views*turns)
	}
}

// Readers that are behind, and such that begin while much changes, know everything in the end.
func pages(t *testing.T, s kept.Store) {
	r := rand.New(rand.NewPCG(1, 2))
	writer, behind := follow(s, "many"), follow(s, "many")
	want := map[string]string{}
	change := func(n int, value func(i int) string) {
		t.Helper()
		for from := 0; from < n; from += 200 {
			var fields, values []string
			for i := from; i < min(n, from+200); i++ {
				field, v := fmt.Sprint("field-", i), value(i)
				fields, values = append(fields, field), append(values, v)
				if want[field] = v; v == "" {
					delete(want, field)
				}
			}
			writer.setAll(t, fields, values)
		}
	}
	check := func(when string, v *view) {
		t.Helper()
		if got := v.known(t); !maps.Equal(got, want) {
			t.Errorf("%s: got %d entries, want %d", when, len(got), len(want))
		}
	}
	change(3000, func(int) string { return "first" })
	check("at the start", behind)
	change(2600, func(i int) string { return [...]string{"", "second"}[i%2] })
	check("after 1,300 removals", behind)
	check("after 1,300 removals, from the start", follow(s, "many"))
	for range 20 {
		change(40, func(int) string { return [...]string{"", "other"}[r.IntN(2)] })
		check("after a few", behind)
	}
	check("all of it", follow(s, "many"))
	if behind.loads > 25 {
		t.Errorf("got %d reads of everything", behind.loads)
	}
}

// A reader of a register that was lost reads the one that takes its place.
func lost(t *testing.T, s kept.Store, lose func()) {
	v := follow(s, "lost")
	v.set(t, "a", "1")
	lose()
	if got := v.known(t); len(got) != 0 {
		t.Errorf("got %q of a register that was lost", got)
	}
	v.set(t, "a", "1")
	lose()
	follow(s, "lost").set(t, "b", "2")
	if got := v.known(t); len(got) != 1 || got["b"] != "2" {
		t.Errorf("got %q, want what is there now", got)
	}
}

// A data directory keeps registers for the next process.
func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := map[string]string{}
	for turn := range 3 {
		d, err := datadir.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		s := kept.NewMemory(d)
		v := follow(s, "r/1")
		if got := v.known(t); !maps.Equal(got, want) {
			t.Errorf("turn %d: got %d entries, want %d", turn, len(got), len(want))
		}
		for i := range 500 {
			field := fmt.Sprint(i + 100*turn)
			v.set(t, field, fmt.Sprint(turn))
			want[field] = fmt.Sprint(turn)
		}
		v.set(t, "300", "")
		delete(want, "300")
		s.Close()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Events that wait for a webhook which was removed leave the directory 25 hours after the last one was added, in the
// process that wrote them or in a later one. Other registers stay.
func TestDirectoryOfRemovedWebhooks(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		names := []string{"overrides", "events", "events/added", "events/removed"}
		for turn, want := range []string{"[]", "[overrides events events/added]", "[overrides events]"} {
			d, err := datadir.Open(dir, datadir.WithInterval(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			s := kept.NewMemory(d)
			follow(s, "overrides").known(t) // loads all
			time.Sleep(10 * time.Hour)
			got := []string{}
			for _, name := range names {
				if _, ok := follow(s, name).known(t)["a"]; ok {
					got = append(got, name)
				}
			}
			if fmt.Sprint(got) != want {
				t.Errorf("turn %d: got %q, want %s", turn, got, want)
			}
			if turn == 0 {
				for _, name := range names {
					follow(s, name).set(t, "a", "somebody")
				}
				time.Sleep(10 * time.Hour)
				follow(s, "events/added").set(t, "b", "somebody else")
			}
			time.Sleep(7 * time.Hour)
			s.Close()
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A change that the disk has no space for is an error each time that it is made, and takes effect when it is written.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	d, err := datadir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	disk := &fullDisk{Store: d}
	s := kept.NewMemory(disk)
	v := follow(s.Durable(), "r")
	v.set(t, "a", "1")
	for _, value := range []string{"2", ""} {
		disk.full = true
		was := v.entries["a"]
		for range 2 {
			err := v.Change(t.Context(), "", func() ([]string, []string, error) {
				if v.entries["a"] == value { // the answer of an attempt was lost
					return nil, nil, nil
				}
				return []string{"a"}, []string{value}, nil
			})
			if _, ok := errors.AsType[*store.OutageError](err); !ok || v.entries["a"] != was {
				t.Errorf("%q: got %v and %q, want an outage and what is on disk", value, err, v.entries)
			}
		}
		disk.full = false
		if got := v.known(t); got["a"] != value {
			t.Errorf("got %q when there is space again, want %q", got, value)
		}
	}
	s.Close()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// fullDisk is a data directory that cannot write while full is set.
type fullDisk struct {
	*datadir.Store
	full bool
}

func (d *fullDisk) Flush(ctx context.Context) error {
	if d.full {
		return errors.New("no space left on device")
	}
	return d.Store.Flush(ctx)
}

// Entries have their order in the next process too.
func TestDirectoryOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var want []string
	for turn := range 3 {
		d, err := datadir.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		s := kept.NewMemory(d)
		v := follow(s, "r")
		v.known(t) // waits until the directory is loaded
		got, _, at, again, err := s.Kept(t.Context(), "r", [2]int64{}, 1000)
		if err != nil || !slices.Equal(got, want) || again != (turn > 0) {
			t.Errorf("turn %d: got %q, again %v, error %v, want %q", turn, got, again, err, want)
		}
		for i := range 100 {
			field := fmt.Sprint(turn, i)
			v.set(t, field, "x")
			want = append(want, field)
		}
		if fields, _, _, again, err := s.Kept(t.Context(), "r", at, 1000); turn > 0 && (err != nil || again || !slices.Equal(fields, want[100*turn:])) {
			t.Errorf("turn %d: got %q, again %v, error %v of what was changed", turn, fields, again, err)
		}
		s.Close()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What a failover has lost is forgotten, also if it was not noticed and other changes followed at once: soon after an
// outage, and otherwise later.
func TestLostChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, outage := range []bool{false, true} {
			primary, replica := kept.NewMemory(nil), kept.NewMemory(nil)
			follow(primary, "r").set(t, "a", "1")
			follow(replica, "r").set(t, "a", "1")
			s := &failing{Store: primary}
			v := follow(s, "r")
			v.set(t, "b", "2")
			if s.Store = replica; outage {
				s.err = errors.New("it fails over")
				if err := v.Sync(t.Context()); err == nil {
					t.Error("got no error in an outage")
				}
				s.err = nil
			}
			time.Sleep(time.Second)
			follow(replica, "r").set(t, "c", "3")
			if got := v.known(t); got["c"] != "3" {
				t.Errorf("outage %v: got %q", outage, got)
			}
			time.Sleep(2 * time.Minute)
			if got := v.known(t); outage && got["b"] != "" {
				t.Errorf("got %q two minutes after an outage, want no b", got)
			}
			time.Sleep(9 * time.Minute)
			if got := v.known(t); !maps.Equal(got, map[string]string{"a": "1", "c": "3"}) {
				t.Errorf("outage %v: got %q after eleven minutes, want a and c", outage, got)
			}
		}
	})
}

// failing is a store that fails with err, unless that is nil.
type failing struct {
	kept.Store
	err error
}

func (f *failing) Kept(ctx context.Context, name string, since [2]int64, most int) ([]string, []string, [2]int64, bool, error) {
	if f.err != nil {
		return nil, nil, since, false, f.err
	}
	return f.Store.Kept(ctx, name, since, most)
}

// A call that waits for the store does not make others wait that need not, or that end.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Store: kept.NewMemory(nil), answers: make(chan struct{})}
		v := follow(s, "r")
		ended := make(chan error)
		go func() { ended <- v.Sync(t.Context()) }()
		synctest.Wait()
		if v.Known() {
			t.Error("a register is known that was not read")
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- v.Sync(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v of a call whose context is done", err)
		}
		var out *store.OutageError
		if err := v.Sync(t.Context()); !errors.As(err, &out) || !out.Uncounted {
			t.Errorf("got %v of a call that waited for long, want an outage", err)
		}
		close(s.answers)
		if err := <-ended; err != nil || !v.Known() {
			t.Errorf("got %v of the first call, known %v", err, v.Known())
		}
	})
}

// However many changes of one share wait, one of another share waits for one of them.
func TestChangesOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Store: kept.NewMemory(nil), answers: make(chan struct{})}
		v := follow(s, "r")
		var made []string
		change := func(share string) {
			go func() {
				err := v.Change(t.Context(), share, func() ([]string, []string, error) {
					made = append(made, share)
					return nil, nil, nil
				})
				if err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		for range 5 {
			change("loud")
		}
		change("quiet")
		close(s.answers)
		synctest.Wait()
		if len(made) != 6 || made[1] != "quiet" {
			t.Errorf("got changes in the order %v, want the quiet one after the first", made)
		}
	})
}

// While the data directory is being loaded, a change fails, and its caller learns when to come again.
func TestChangeWhileLoading(t *testing.T) {
	t.Parallel()
	v := follow(kept.NewMemory(unloaded{}), "r")
	var out *store.OutageError
	if err := v.Change(t.Context(), "", nil); !errors.As(err, &out) || out.RetryAfter != time.Second {
		t.Errorf("got %v, want an outage of a second", err)
	}
}

// unloaded is a side store that is still being loaded.
type unloaded struct{ hook.SideStore }

func (unloaded) Loaded() <-chan struct{} { return nil }

func (unloaded) Follow(func(put func(name string, data []byte))) (end func()) { return func() {} }

// A caller with little time does not make a store unavailable for others.
func TestLittleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := follow(&silent{kept.NewMemory(nil)}, "r")
		v.Failed = func(err error) { t.Errorf("got a failure of the store: %v", err) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := v.Sync(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that the time is over", err)
		}
	})
}

// silent is a store that does not answer reads.
type silent struct{ kept.Store }

func (*silent) Kept(ctx context.Context, _ string, since [2]int64, _ int) ([]string, []string, [2]int64, bool, error) {
	<-ctx.Done()
	return nil, nil, since, false, ctx.Err()
}

// slow is a store that answers reads when it may.
type slow struct {
	kept.Store
	answers chan struct{}
}

func (s *slow) Kept(ctx context.Context, name string, since [2]int64, most int) ([]string, []string, [2]int64, bool, error) {
	<-s.answers
	return s.Store.Kept(ctx, name, since, most)
}

// An outage leaves what is known, and is told once.
func TestOutage(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := open(t, "redis://"+n.Addr()+"?timeout=1s")
	v := follow(s, "r")
	var failed, answered int
	v.Failed, v.Answered = func(error) { failed++ }, func() { answered++ }
	v.set(t, "a", "1")
	n.Kill()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 3 {
		if err := v.Sync(ctx); err == nil {
			t.Error("got no error of a store that is unavailable")
		}
	}
	if err := v.Change(ctx, "", func() ([]string, []string, error) { return []string{"b"}, []string{"2"}, nil }); err == nil {
		t.Error("got no error of a change")
	}
	if failed != 1 || answered != 0 || v.entries["a"] != "1" {
		t.Errorf("got %d failures, %d answers and %q", failed, answered, v.entries)
	}
}
