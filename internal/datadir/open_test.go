package datadir_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/storetest"
	"github.com/weirhq/weir/window"
)

// One process at a time uses a directory.
func TestLock(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "data")
	s, err := datadir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = datadir.Open(dir)
	if !errors.Is(err, datadir.ErrLocked) {
		t.Fatalf("the second: got error %v, want ErrLocked", err)
	}
	if want := "data directory: " + dir + ": another process uses this directory; end it, or name another directory"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if runtime.GOOS != "windows" { // where a file that is open cannot be removed
		if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
			t.Fatal(err)
		}
		if _, err = datadir.Open(dir); !errors.Is(err, datadir.ErrLocked) {
			t.Fatalf("the second, after somebody has removed the file lock: got error %v, want ErrLocked", err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("got mode %v, %v, want 0700", info.Mode(), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: got %v", err)
	}
	if s, err = datadir.Open(dir); err != nil {
		t.Fatalf("after the first has ended: got %v", err)
	}
	s.Close()
}

// A directory of a later version is refused, and stays as it is.
func TestLaterVersion(t *testing.T) {
	t.Parallel()
	disk := fill(t, 1, 1)
	name := disk.Names()[0]
	data := disk.Data(name)
	// The version is behind the magic; a later program would also set the checksums.
	later := datadir.LaterVersion(data)
	disk.Put(name, later)
	_, err := datadir.Open("", datadir.WithDisk(disk))
	if err == nil || !strings.Contains(err.Error(), name+": written by a later version of weir: layout 2, this program reads up to 1") {
		t.Errorf("got error %v", err)
	}
	if string(disk.Data(name)) != string(later) {
		t.Error("the file has changed")
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for want, opt := range map[string]datadir.Option{
		`data directory: sync: "often": not one of always, interval, os`: datadir.WithSync("often"),
		`data directory: interval: 0s: out of range 1ms to 1h0m0s`:       datadir.WithInterval(0),
	} {
		dir := filepath.Join(t.TempDir(), "none")
		if _, err := datadir.Open(dir, opt); err == nil || err.Error() != want {
			t.Errorf("got error %v, want %s", err, want)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Error("the directory was made")
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.Open(file); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("a file: got error %v", err)
	}
}

// Until the counters are loaded, all calls meet an outage. A close meanwhile writes
// nothing.
func TestLoadingInBackground(t *testing.T) {
	t.Parallel()
	disk := fill(t, 3, 2)
	before := disk.Data(disk.Names()[0])
	reading, release := make(chan struct{}), make(chan struct{})
	slow := &datadir.SlowDisk{Disk: disk, Reading: reading, Release: release}
	s, err := datadir.Open("", datadir.WithAnyDisk(slow), datadir.InBackground())
	if err != nil {
		t.Fatal(err)
	}
	<-reading
	op := store.Op{Space: space, Limit: ever, Key: []byte("0"), N: 1}
	_, read := s.Read(t.Context(), &op)
	for i, err := range []error{store.Do(t.Context(), s, store.Take, []store.Op{op}), read, s.Forget(t.Context(), &op)} {
		var out *store.OutageError
		if !errors.As(err, &out) || out.Reason != "loading" || out.RetryAfter <= 0 {
			t.Errorf("call %d while loading: got error %v, want an outage of %s", i, err, "loading")
		}
	}
	if !s.Stats().Loading {
		t.Error("got not loading, want loading")
	}
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	<-s.Closing()
	close(release)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if string(disk.Data(disk.Names()[0])) != string(before) || len(disk.Names()) != 1 {
		t.Error("a close while loading has changed the files")
	}
	s, err = datadir.Open("", datadir.WithDisk(disk), datadir.InBackground())
	if err != nil {
		t.Fatal(err)
	}
	<-s.Loaded()
	if got := usedOf(t, s, 0); got != 2 {
		t.Errorf("got %d, want 2", got)
	}
	if st := s.Stats(); st.Loading || st.Loaded != 3 {
		t.Errorf("got %+v, want 3 keys loaded", st)
	}
	s.Close()
}

// The steady clock of the next process: see resumed.
func TestResumed(t *testing.T) {
	t.Parallel()
	const last, up = window.Instant(1e15), int64(5e9)
	hour := int64(time.Hour / time.Microsecond)
	for _, test := range []struct {
		name              string
		now               int64
		boot              uint64
		wall, least, most window.Instant
	}{
		{"the machine has run an hour", up + hour, 7, last.Add(time.Hour), last.Add(time.Hour - time.Second), last.Add(time.Hour)},
		{"and the wall clock was set back a day", up + hour, 7, last.Add(-24 * time.Hour), last.Add(time.Hour - time.Second), last.Add(time.Hour)},
		{"or ahead a year", up + hour, 7, last.Add(8760 * time.Hour), last.Add(time.Hour - time.Second), last.Add(time.Hour)},
		{"another start: the wall clock counts", 10, 8, last.Add(time.Hour), last.Add(time.Hour), last.Add(time.Hour)},
		{"and was set back", 10, 8, last.Add(-time.Hour), last, last},
		{"the start is not known", 0, 0, last.Add(time.Hour), last.Add(time.Hour), last.Add(time.Hour)},
		{"the uptime goes back", 10, 7, last.Add(time.Hour), last.Add(time.Hour), last.Add(time.Hour)},
	} {
		if got := datadir.Resumed(last, up, 7, test.now, test.boot, test.wall); got < test.least || got > test.most {
			t.Errorf("%s: got %v, want %v to %v", test.name, got, test.least, test.most)
		}
	}
}

// What has expired is not loaded; what has not, is. Time goes on at the machine's own.
func TestExpiredKeys(t *testing.T) {
	t.Parallel()
	now := window.At(time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC))
	clock := datadir.WithClock(func() window.Instant { return now })
	minute := window.MustCompile(window.Limit{Quota: 5, Window: window.Fixed(time.Minute)})
	day := window.MustCompile(window.Limit{Quota: 5, Window: window.Fixed(24 * time.Hour)})
	disk := datadir.NewDisk()
	s := mustOpen(t, disk, clock)
	for name, l := range map[string]*window.Compiled{"minute": minute, "day": day} {
		if _, err := one(t.Context(), s, store.Take, store.NewSpace("", name, name, 0), l, "k", "", 1); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	now = now.Add(3 * time.Hour) // an hour more than a key outlives its expiry with such a clock
	s = mustOpen(t, disk, clock)
	defer s.Close()
	if n := s.Stats().Loaded; n != 1 {
		t.Errorf("got %d keys, want 1", n)
	}
	if st := s.Memory().Stats(store.NewSpace("", "day", "day", 0)); len(st) != 1 || st[0].Keys != 1 {
		t.Errorf("got %+v keys of the day, want 1", st)
	}
}

// Blobs are kept, the last one of a name, through restarts and new files.
func TestBlobs(t *testing.T) {
	t.Parallel()
	disk := datadir.NewDisk()
	s := mustOpen(t, disk)
	s.PutBlob("a", []byte("1"))
	s.PutBlob("b", []byte("2"))
	s.PutBlob("a", []byte("3"))
	s.Close()
	for range 3 {
		s = mustOpen(t, disk)
		if got := string(s.Blob("a")) + string(s.Blob("b")); got != "32" {
			t.Errorf("got %q, want 32", got)
		}
		secret := s.Secrets(false)[0]
		s.Close()
		s = mustOpen(t, disk)
		if s.Secrets(false)[0] != secret || secret == [16]byte{} {
			t.Error("the secret of receipts has changed, or is zero")
		}
		s.Close()
	}
}

// A new secret of receipts, and the one before it, outlive the process, a loss of power
// and the compaction that drops the older files.
func TestRotatedSecret(t *testing.T) {
	t.Parallel()
	disk := datadir.NewDisk()
	s := mustOpen(t, disk)
	first := s.Secrets(false)[0]
	for range 2 {
		if err := s.RotateSecret(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	want := slices.Clone(s.Secrets(false))
	if len(want) != 2 || want[0] == want[1] || slices.Contains(want, first) {
		t.Fatalf("got secrets %x, want two that are not the first, %x", want, first)
	}
	for what, d := range map[string]*datadir.Disk{"at once": disk.Clone(), "after a loss of power": disk.PowerLoss(rand.New(rand.NewPCG(1, 1)))} {
		again := mustOpen(t, d)
		if got := again.Secrets(false); !slices.Equal(got, want) {
			t.Errorf("%s: got secrets %x, want %x", what, got, want)
		}
		again.Close()
	}
	s.Close()
	s = mustOpen(t, disk)
	defer s.Close()
	if got := s.Secrets(false); !slices.Equal(got, want) {
		t.Errorf("in the next process: got secrets %x, want %x", got, want)
	}
	if err := s.RotateSecret(t.Context(), 0); err != nil || len(s.Secrets(false)) != 1 {
		t.Errorf("got error %v and %d secrets, want 1", err, len(s.Secrets(false)))
	}
	disk.SetFail(func(operation, _ string) error { return errors.New(operation) })
	if err := s.RotateSecret(t.Context(), 0); err == nil {
		t.Error("on a disk that fails: got no error")
	}
	disk.SetFail(nil)
}

// A receipt of one process settles its hold in the next one. A ban goes on.
func TestReceiptsAndBansGoOn(t *testing.T) {
	t.Parallel()
	set, err := rule.New([]rule.Rule{
		{
			Name: "tokens", Per: []string{"team"}, Measure: window.Sum, Of: "tokens",
			Quota: &rule.Quota{Value: 1000}, Window: window.Sliding(time.Minute), Hold: 5 * time.Minute,
		},
		{Name: "calls", Per: []string{"team"}, Quota: &rule.Quota{Value: 2}, Window: window.Calendar(window.Month, nil)},
		{Name: "logins", Per: []string{"account"}, Quota: &rule.Quota{Value: 1}, Window: window.Fixed(time.Hour), Ban: window.Ban{For: 24 * time.Hour}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	disk := datadir.NewDisk()
	next := func() (*weir.Engine, func()) {
		s := mustOpen(t, disk)
		e, err := weir.NewEngine(set, weir.WithStore(s))
		if err != nil {
			t.Fatal(err)
		}
		return e, func() {
			if err := errors.Join(e.Close(), s.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	take := func(e *weir.Engine, attributes ...string) weir.Decision {
		d, err := e.Take(t.Context(), weir.Request{Attributes: weir.Attributes(attributes...)})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	e, end := next()
	first := take(e, "team", "red", "tokens", "600")
	second := take(e, "team", "red", "tokens", "300")
	take(e, "account", "ann")
	if d := take(e, "account", "ann"); d.Allowed {
		t.Error("the second login: got allowed, want a ban")
	}
	end()

	e, end = next()
	d, err := e.Settle(t.Context(), first.Receipt, weir.Request{Attributes: weir.Attributes("team", "red", "tokens", "100")})
	if err != nil || !d.Usages[0].Held || d.Usages[0].Used != 400 {
		t.Errorf("settle after a restart: got %+v, %v, want 400 used, held until now", d.Usages, err)
	}
	d, err = e.Cancel(t.Context(), second.Receipt, weir.Request{Attributes: weir.Attributes("team", "red", "tokens", "300")})
	if err != nil || !d.Usages[0].Held || d.Usages[0].Used != 100 || d.Usages[1].Used != 1 {
		t.Errorf("cancel after a restart: got %+v, %v, want 100 tokens and 1 call used", d.Usages, err)
	}
	if d := take(e, "account", "ann"); d.Allowed || d.RetryAfter < 23*time.Hour {
		t.Errorf("a login after a restart: got %+v, want a ban of a day", d)
	}
	end()
}

// A receipt of an outage in which the shared store's secret was never known is valid in the next
// process, because the directory keeps its hold.
func TestReceiptsOfOutagesGoOn(t *testing.T) {
	t.Parallel()
	set, err := rule.New([]rule.Rule{{
		Name: "tokens", Per: []string{"team"}, Quota: &rule.Quota{Value: 1000}, Window: window.Sliding(time.Hour), Hold: time.Hour,
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &far{Opened: storetest.NewModel()}
	f.away.Store(true)
	disk := datadir.NewDisk()
	next := func() (*weir.Engine, func()) {
		s := mustOpen(t, disk)
		e, err := weir.NewEngine(set, weir.WithStore(&link{far: f}), weir.WithLocal(s, 1))
		if err != nil {
			t.Fatal(err)
		}
		return e, func() {
			if err := errors.Join(e.Close(), s.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	e, end := next()
	request := weir.Request{Attributes: weir.Attributes("team", "red")}
	d, err := e.Take(t.Context(), request)
	if err != nil || d.Receipt.IsZero() {
		t.Fatalf("got %+v, %v, want a receipt", d, err)
	}
	end()
	e, end = next()
	defer end()
	if d, err = e.Cancel(t.Context(), d.Receipt, request); err != nil || !d.Usages[0].Held {
		t.Errorf("cancel after a restart: got %+v, %v, want that the hold was found", d, err)
	}
}

// An engine counts in the store as in memory, and its next process goes on.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "weir")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	for range 2 { // two processes, one after another
		s, err := datadir.Open(dir)
		if err != nil {
			panic(err)
		}
		exports, err := weir.NewLimiter(weir.Sliding(3, 24*time.Hour), weir.WithStore(s), weir.WithName("exports"))
		if err != nil {
			panic(err)
		}
		for range 2 {
			r, err := exports.Allow(context.Background(), "user-42")
			if err != nil {
				panic(err)
			}
			fmt.Println(r.Allowed, r.Remaining)
		}
		if err := s.Close(); err != nil { // writes what changed last
			panic(err)
		}
	}
	// Output:
	// true 2
	// true 1
	// true 0
	// false 0
}

// A blob that was dropped is in no file a day later, also if little else was written.
func TestDroppedBlobsLeaveTheFiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := datadir.NewDisk()
		holds := func() (n int) {
			for _, name := range disk.Names() {
				n += bytes.Count(disk.Data(name), []byte("somebody"))
			}
			return n
		}
		s := mustOpen(t, disk, datadir.WithInterval(10*time.Second))
		s.PutBlob("a", []byte("somebody"))
		s.PutBlob("b", []byte("somebody else"))
		take(t, s, 10)
		time.Sleep(time.Minute)
		s.PutBlob("a", nil)
		s.Close()
		s = mustOpen(t, disk, datadir.WithInterval(10*time.Second))
		time.Sleep(time.Minute)
		if got := holds(); got < 2 {
			t.Fatalf("got %d blobs in the files, want two", got)
		}
		time.Sleep(24*time.Hour + time.Minute)
		if got, compactions := holds(), s.Stats().Compactions; got != 1 || compactions != 1 {
			t.Errorf("a day later: got %d blobs in the files after %d compactions, want one and one", got, compactions)
		}
		time.Sleep(72 * time.Hour)
		if got := s.Stats().Compactions; got != 1 {
			t.Errorf("got %d compactions, want no more", got)
		}
		s.Close()
		wants(t, disk, 10, 1)
	})
}

// Blobs that stay as they are call for no compaction, however large they are together.
func TestManyBlobsStay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, datadir.NewDisk(), datadir.WithInterval(10*time.Second))
		defer s.Close()
		take(t, s, 10)
		for i := range 6 {
			s.PutBlob(fmt.Sprint(i), make([]byte, 1<<20))
		}
		time.Sleep(time.Minute)
		take(t, s, 10)
		time.Sleep(time.Minute)
		if got := s.Stats(); got.Compactions > 2 || got.WrittenBytes > 13<<20 {
			t.Errorf("got %d compactions and %d bytes written, want two, of which the first is that of a new file", got.Compactions, got.WrittenBytes)
		}
	})
}

// What was in a blob that was replaced is in no file a day later either, also if processes live for less than a day.
// A blob that only grows causes no compaction.
func TestReplacedBlobsLeaveTheFiles(t *testing.T) {
	t.Parallel()
	for replaced, want := range map[string]int64{"nobody": 1, "somebody, and somebody else": 0} {
		synctest.Test(t, func(t *testing.T) {
			disk, compactions := datadir.NewDisk(), int64(-1) // without that of the first file
			for _, data := range []string{"somebody", replaced, replaced, replaced} {
				s := mustOpen(t, disk, datadir.WithInterval(10*time.Second))
				time.Sleep(time.Minute)
				if string(s.Blob("a")) != data {
					s.PutBlob("a", []byte(data))
				}
				time.Sleep(10 * time.Hour)
				compactions += s.Stats().Compactions
				s.Close()
			}
			var all []byte
			for _, name := range disk.Names() {
				all = append(all, disk.Data(name)...)
			}
			if old := bytes.Contains(all, []byte("somebody")); old != (want == 0) || compactions != want {
				t.Errorf("replaced by %q: got %d compactions, the old data in the files: %v", replaced, compactions, old)
			}
		})
	}
}

// A foreign file, whatever its number, costs no counters.
func TestForeignFiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"9999999999.log", "12345678901.log", "0000000000.log", "1.log", "-000000001.log", "0x00000001.log"} {
		disk := fill(t, 3, 1)
		disk.Put(name, make([]byte, 5000))
		for want := range int64(3) {
			s := mustOpen(t, disk)
			if got := usedOf(t, s, 0); got != want+1 {
				t.Fatalf("%s: got %d used, want %d", name, got, want+1)
			}
			take(t, s, 3)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
