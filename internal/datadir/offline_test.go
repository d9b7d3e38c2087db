package datadir_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/datadir"
)

// filled returns a directory with keys from 0 to keys-1, each taken as often as
// there were processes.
func filled(t testing.TB, keys, processes int) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	for range processes {
		s, err := datadir.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		take(t, s, keys)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Files that are symbolic links are loaded, too.
func TestSymbolicLink(t *testing.T) {
	t.Parallel()
	dir := filled(t, 3, 1)
	name := filepath.Join(dir, "0000000001.log")
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := errors.Join(os.Rename(name, elsewhere), os.Symlink(elsewhere, name)); err != nil {
		t.Skip(err) // not all users of Windows may make links
	}
	r, err := datadir.Check(dir)
	if err != nil || r.Keys != 3 || len(r.Files) != 1 {
		t.Errorf("got %+v, %v, want 3 keys in a file", r, err)
	}
	s, err := datadir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	take(t, s, 3)
	if got := usedOf(t, s, 0); got != 2 {
		t.Errorf("got %d used, want 2", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// flip flips a bit in the middle of the only file of dir.
func flip(t testing.TB, dir string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(names) != 1 {
		t.Fatalf("got files %v, %v, want one", names, err)
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 4
	if err := os.WriteFile(names[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// noDamage is for a directory without damage.
func noDamage(t testing.TB) func(datadir.Event) {
	return func(e datadir.Event) { t.Errorf("got %v, want no damage", e) }
}

func TestCheck(t *testing.T) {
	t.Parallel()
	dir := filled(t, 50, 3)
	r, err := datadir.Check(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r.Keys != 50 || len(r.Spaces) != 1 || r.Spaces[0].Name != "crash" || r.Spaces[0].Limit != *ever.Limit || r.Damaged != 0 || len(r.Damage) != 0 {
		t.Errorf("got %+v", r)
	}
	if len(r.Files) != 1 || !r.Files[0].Whole || r.Files[0].Bytes != r.Bytes || r.Version != 1 {
		t.Errorf("got %+v", r)
	}
	flip(t, dir)
	if r, err = datadir.Check(dir); err != nil || r.Damaged != 1 || len(r.Damage) != 1 || r.Damage[0].Kind != datadir.Damaged {
		t.Errorf("damaged: got %+v, %v", r, err)
	}
	s, err := datadir.Open(dir) // a directory in use
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if r, err = datadir.Check(dir); err != nil || r.Keys != 50 {
		t.Errorf("in use: got %+v, %v", r, err)
	}
}

func TestDump(t *testing.T) {
	t.Parallel()
	dir := filled(t, 50, 3)
	keys := map[uint64]bool{}
	if err := datadir.Dump(dir, func(e datadir.Entry) error {
		keys[e.Key] = true
		if e.Space != "crash" || e.Reading.Used != 3 {
			t.Errorf("got %+v, want 3 used", e)
		}
		return nil
	}, noDamage(t)); err != nil || len(keys) != 50 {
		t.Errorf("got %d keys, %v, want 50", len(keys), err)
	}
	stop := errors.New("stop")
	if err := datadir.Dump(dir, func(datadir.Entry) error { return stop }, noDamage(t)); !errors.Is(err, stop) {
		t.Errorf("got %v, want the error of visit", err)
	}
}

func TestCompact(t *testing.T) {
	t.Parallel()
	dir := filled(t, 200, 20)
	before, after, err := datadir.Compact(dir, noDamage(t))
	if err != nil {
		t.Fatal(err)
	}
	if after*4 > before {
		t.Errorf("got %d bytes of %d, want fewer", after, before)
	}
	flip(t, dir)
	var found []datadir.Event
	if _, _, err = datadir.Compact(dir, func(e datadir.Event) { found = append(found, e) }); err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Error("a damaged directory: got no event")
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "*.damaged")); len(names) != 1 {
		t.Errorf("got damaged files %v, want one", names)
	}
	s, err := datadir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, _, err = datadir.Compact(dir, noDamage(t)); !errors.Is(err, datadir.ErrLocked) {
		t.Errorf("in use: got %v, want ErrLocked", err)
	}
}

// After a compaction every count is as it was.
func TestCompactKeepsCounts(t *testing.T) {
	t.Parallel()
	dir := filled(t, 200, 5)
	if _, _, err := datadir.Compact(dir, noDamage(t)); err != nil {
		t.Fatal(err)
	}
	s, err := datadir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for key := range 200 {
		if got := usedOf(t, s, key); got != 5 {
			t.Errorf("key %d: got %d, want 5", key, got)
		}
	}
}

// A backup under load, while files are replaced, has of each key what was written at
// some instant: at least what was flushed when it began, at most what was asked for
// when it ended.
func TestBackup(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s, err := datadir.Open(dir, datadir.WithInterval(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(t.Context()); err != nil { // until the first flush there is no file
		t.Fatal(err)
	}
	begun, ended := ledger{}, ledger{}
	stop := make(chan struct{})
	group := load(t, s, &begun, &ended, 1, stop)
	for round := range 20 {
		before := time.Now().Add(-s.Stats().Lag)
		to := filepath.Join(t.TempDir(), fmt.Sprint(round))
		if _, err := datadir.Backup(dir, to, noDamage(t)); err != nil {
			t.Fatal(err)
		}
		var most [keysUsed]int64
		for key := range most {
			most[key] = begun.all(key)
		}
		var lines told
		restored, err := datadir.Open(to, datadir.WithEvents(lines.add))
		if err != nil {
			t.Fatal(err)
		}
		for key := range most {
			if got, least := usedOf(t, restored, key), ended.before(key, before); got < least || got > most[key] {
				t.Errorf("round %d, key %d: got %d, want %d to %d", round, key, got, least, most[key])
			}
		}
		if kinds := lines.kinds(); len(kinds) != 0 {
			t.Errorf("got events %v, want none", kinds)
		}
		restored.Close()
		if _, err := datadir.Backup(dir, to, noDamage(t)); err == nil || !strings.Contains(err.Error(), to+" is not empty") {
			t.Errorf("to a directory with files: got %v", err)
		}
	}
	close(stop)
	group.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.Backup(t.TempDir(), filepath.Join(t.TempDir(), "to"), noDamage(t)); err == nil {
		t.Error("a directory without counters: got no error")
	}
}

// A backup does not report a file as damaged that a process begins at the same time.
func TestBackupOfNewFile(t *testing.T) {
	t.Parallel()
	disk := fill(t, 10, 1)
	if err := datadir.CompactOf(disk); err != nil {
		t.Fatal(err)
	}
	name := disk.Names()[0]
	data := disk.Data(name)
	disk.Put(name, nil)
	opened := 0
	disk.Opening = func(string) {
		if opened++; opened == 2 { // the first time it is listed
			disk.Put(name, data)
		}
	}
	to := datadir.NewDisk()
	if err := datadir.BackupOf(disk, to, noDamage(t)); err != nil {
		t.Fatal(err)
	}
	if got, events := dumped(t, to); len(got) != 10 || len(events) != 0 {
		t.Errorf("got %d keys, events %v", len(got), events)
	}
}

// A backup that was killed is neither loaded nor found to be whole, however far it came.
func TestKilledBackup(t *testing.T) {
	t.Parallel()
	disk := fill(t, 10, 1)
	disk.Put("0000000002.log", disk.Data("0000000001.log"))
	ignore := func(datadir.Event) {}
	for killed := 1; ; killed++ { // before a later step each time
		to, steps := datadir.NewDisk(), 0
		to.Fail = func(string, string) error {
			if steps++; steps >= killed {
				return errors.New("killed")
			}
			return nil
		}
		if datadir.BackupOf(disk, to, ignore) == nil {
			return
		}
		to.Fail = nil
		if names := to.Names(); len(names) == 0 || slices.Equal(names, disk.Names()) {
			continue // there is nothing, or all but the sync of the folder
		}
		err := datadir.DumpOf(to, func(datadir.Entry) error { return nil }, ignore)
		if err == nil || !strings.Contains(err.Error(), ".log.incomplete is of a backup that did not finish") {
			t.Errorf("%v: got %v, want the error of an incomplete backup", to.Names(), err)
		}
	}
}
