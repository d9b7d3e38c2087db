//go:build linux || darwin

package datadir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/datadir"
)

// A backup that is moved to the path of a directory in use, before its process has ended, stays as it is
// for the next process. Writing fails until the directory is moved back.
func TestReplacedWhileOpen(t *testing.T) {
	t.Parallel()
	const keys = 100
	for _, back := range []bool{false, true} {
		dir := filled(t, keys, 1)
		backup, old := dir+" backup", dir+" old"
		if _, err := datadir.Backup(dir, backup, func(datadir.Event) {}); err != nil {
			t.Fatal(err)
		}
		events := make(chan datadir.Event, 100)
		next := func(kind datadir.EventKind) error {
			for e := range events {
				if e.Kind == kind {
					return e.Err
				}
			}
			return nil
		}
		s, err := datadir.Open(dir, datadir.WithInterval(time.Millisecond), datadir.WithEvents(func(e datadir.Event) { events <- e }))
		if err != nil {
			t.Fatal(err)
		}
		take(t, s, keys)
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		move(t, dir, old)
		move(t, backup, dir)
		restored := contents(t, dir)
		if err := next(datadir.Failing); err == nil {
			t.Error("got no error of a flush")
		}
		take(t, s, keys)
		if err := s.Flush(t.Context()); err == nil {
			t.Error("got no error of Flush")
		}
		if back {
			move(t, dir, backup)
			move(t, old, dir)
			_ = next(datadir.Writing)
		}
		const want = "the directory was replaced while this process used it"
		if err := s.Close(); back != (err == nil) || !back && !strings.Contains(err.Error(), want) {
			t.Errorf("moved back %v: Close returned %v", back, err)
		}
		now, used := dir, int64(1)
		if back {
			now, used = backup, 3
		}
		if contents(t, now) != restored {
			t.Errorf("moved back %v: the restored directory has changed", back)
		}
		if s, err = datadir.Open(dir); err != nil {
			t.Fatal(err)
		}
		for key := range keys {
			if got := usedOf(t, s, key); got != used {
				t.Fatalf("moved back %v, key %d: got %d, want %d", back, key, got, used)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// Two processes of which the second begins in the place of the first one's directory do not write to
// the same one.
func TestReplacedForAnother(t *testing.T) {
	t.Parallel()
	dir := filled(t, 1, 1)
	first, err := datadir.Open(dir, datadir.WithInterval(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	move(t, dir, filepath.Join(t.TempDir(), "old"))
	second, err := datadir.Open(dir, datadir.WithSync(datadir.Always))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		take(t, second, 1)
		take(t, first, 1)
		_ = first.Flush(t.Context()) // fails
	}
	killed := filepath.Join(t.TempDir(), "killed")
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if first.Close() == nil || second.Close() != nil {
		t.Error("want an error of the first only")
	}
	for _, at := range []string{killed, dir} {
		s, err := datadir.Open(at)
		if err != nil {
			t.Fatal(err)
		}
		if got := usedOf(t, s, 0); got != 20 {
			t.Errorf("%s: got %d, want the 20 hits of the second", at, got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
