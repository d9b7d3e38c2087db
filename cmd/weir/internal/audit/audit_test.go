package audit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/audit"
	"github.com/weirhq/weir/cmd/weir/internal/stores"
	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/window"
)

// rules returns the rules of the newest n entries, the newest first.
func rules(t *testing.T, trail *audit.Trail, namespace string, n int, until time.Time) (names []string) {
	t.Helper()
	found, err := trail.List(t.Context(), namespace, n, until)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found.Entries {
		names = append(names, e.Rule)
	}
	return names
}

func forget(n int) audit.Entry {
	return audit.Entry{
		Action: audit.Forget, By: audit.Caller{Token: "ops", Address: "192.0.2.1"}, Rule: fmt.Sprint(n),
		Attributes: map[string]string{"user": "ann"}, Before: []byte(`{"used":1}`),
	}
}

// The newest 10,000 are kept, for each namespace by itself, also by a data directory for the next process.
func TestDirectory(t *testing.T) {
	t.Parallel()
	dir, next := t.TempDir(), 0
	for turn, n := range []int{3, 150, 10_020, 2} {
		d, err := datadir.Open(dir, datadir.WithSync(datadir.OS)) // each entry is written, and syncs take long
		if err != nil {
			t.Fatal(err)
		}
		trail := audit.New(audit.Config{Side: d})
		if got := rules(t, trail, "a", 1, time.Time{}); next > 0 && (len(got) != 1 || got[0] != fmt.Sprint(next-1)) {
			t.Errorf("turn %d: got %s, want %d", turn, got, next-1)
		}
		for range n {
			trail.Add("a", forget(next))
			next++
		}
		trail.Add("b", forget(turn))
		if got := rules(t, trail, "a", 2, time.Time{}); !slices.Equal(got, []string{fmt.Sprint(next - 1), fmt.Sprint(next - 2)}) {
			t.Errorf("turn %d: got %s, want the newest two before %d", turn, got, next)
		}
		if got := rules(t, trail, "a", 20_000, time.Time{}); len(got) != min(next, audit.Size) {
			t.Errorf("turn %d: got %d, want %d", turn, len(got), min(next, audit.Size))
		}
		if got := rules(t, trail, "b", 10, time.Time{}); len(got) != turn+1 {
			t.Errorf("turn %d: got %s of the other namespace", turn, got)
		}
		trail.Close()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What a caller did is in a directory when Add returns, however rarely the directory is written.
func TestWritten(t *testing.T) {
	t.Parallel()
	for _, sync := range datadir.Syncs() {
		t.Run(string(sync), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			d, err := datadir.Open(dir, datadir.WithSync(sync), datadir.WithInterval(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			<-d.Loaded()
			trail := audit.New(audit.Config{Side: d})
			defer trail.Close()
			trail.Add("a", forget(1))
			copied := t.TempDir() // as a process finds the directory after this one is killed
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			next, err := datadir.Open(copied)
			if err != nil {
				t.Fatal(err)
			}
			defer next.Close()
			<-next.Loaded()
			if got := rules(t, audit.New(audit.Config{Side: next}), "a", 10, time.Time{}); !slices.Equal(got, []string{"1"}) {
				t.Errorf("got %q, want the entry", got)
			}
		})
	}
}

// The entries of all namespaces are bounded together: the one with most loses its oldest.
func TestBytes(t *testing.T) {
	t.Parallel()
	const size, n = 32 << 10, 3000
	trail := audit.New(audit.Config{})
	trail.Add("small", forget(1))
	for i := range n {
		e := forget(i)
		e.Attributes = map[string]string{"user": strings.Repeat("x", size)}
		trail.Add("large", e)
	}
	got := rules(t, trail, "large", n, time.Time{})
	if len(got) == 0 || len(got)*size > 64<<20 || len(got)*size < 60<<20 || got[0] != fmt.Sprint(n-1) {
		t.Errorf("got %d entries with %d bytes, want the newest ones with almost 64 MiB", len(got), len(got)*size)
	}
	if got := rules(t, trail, "small", n, time.Time{}); len(got) != 1 {
		t.Errorf("got %q of the small namespace, want its entry", got)
	}
}

// Entries that a store has not taken wait for it, are listed meanwhile, and are there once.
func TestRemote(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	at, err := stores.Parse("redis://" + n.Addr() + "?timeout=5s")
	if err != nil {
		t.Fatal(err)
	}
	s, err := at.Open(t.Context(), stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var mu sync.Mutex
	fails := true
	remote := func(ctx context.Context, name string, age time.Duration, at []window.Instant, entries []string, skip, n int) ([]string, error) {
		mu.Lock()
		defer mu.Unlock()
		newest, err := s.Log(ctx, name, age, at, entries, skip, n)
		if fails {
			err = errors.New("the answer is lost")
		}
		return newest, err
	}
	trail := audit.New(audit.Config{Remote: remote})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { trail.Run(ctx) })
	for i := range 3 {
		trail.Add("a", forget(i))
	}
	want := []string{"2", "1", "0"}
	if found, err := trail.List(ctx, "a", 10, time.Time{}); err != nil || !found.Degraded || len(found.Entries) != 3 {
		t.Errorf("got %+v, %v, want three that wait", found, err)
	}
	mu.Lock()
	fails = false
	mu.Unlock()
	redistest.Eventually(t, "the store has them", func() bool {
		other := audit.New(audit.Config{Remote: s.Log})
		return slices.Equal(rules(t, other, "a", 10, time.Time{}), want)
	})
	if got := rules(t, trail, "a", 10, time.Time{}); !slices.Equal(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := rules(t, trail, "a", 10, time.Now().Add(-time.Hour)); len(got) != 0 {
		t.Errorf("got %s of an hour ago", got)
	}
	trail.Add("a", forget(3))
	cancel()
	running.Wait()
	trail.Close()
	if got := rules(t, audit.New(audit.Config{Remote: s.Log}), "a", 1, time.Time{}); !slices.Equal(got, []string{"3"}) {
		t.Errorf("got %s, want what was added before the end", got)
	}
}

// An entry is sent at once, so that a process that is killed has few that it did not send.
func TestSentAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		var fails atomic.Bool
		trail := audit.New(audit.Config{Remote: func(_ context.Context, _ string, _ time.Duration, _ []window.Instant, entries []string, _, _ int) ([]string, error) {
			if fails.Load() {
				return nil, errors.New("the store does not answer")
			}
			sent = append(sent, entries...)
			return nil, nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go trail.Run(ctx)
		for n := range 3 {
			trail.Add("a", forget(n))
			if synctest.Wait(); len(sent) != n+1 {
				t.Fatalf("got %d entries sent before any time passed, want %d", len(sent), n+1)
			}
		}
		fails.Store(true)
		trail.Add("a", forget(3))
		synctest.Wait()
		fails.Store(false)
		time.Sleep(time.Second) // fake time
		if synctest.Wait(); len(sent) != 4 {
			t.Errorf("got %d entries sent, want also the one that the store did not take at first", len(sent))
		}
	})
}

// The log has all entries, without keys where they are hidden, and what such entries had before and after.
func TestLog(t *testing.T) {
	t.Parallel()
	for _, hide := range []bool{false, true} {
		var text strings.Builder
		trail := audit.New(audit.Config{Log: slog.New(slog.NewTextHandler(&text, nil)), HideKeys: hide})
		trail.Add("shop", forget(1))
		for _, part := range []string{"action=forget", "namespace=shop", "token=ops", "address=192.0.2.1", "rule=1"} {
			if !strings.Contains(text.String(), part) {
				t.Errorf("got %s, want %s in it", text.String(), part)
			}
		}
		if got := strings.Contains(text.String(), "attributes.user=ann"); got == hide {
			t.Errorf("got %s with keys hidden: %v", text.String(), hide)
		}
		if got := strings.Contains(text.String(), "before="); got == hide {
			t.Errorf("got %s with keys hidden: %v", text.String(), hide)
		}
		trail.Add("shop", audit.Entry{Action: audit.RulesChanged, After: []byte("7")})
		if !strings.Contains(text.String(), "after=7") {
			t.Errorf("got %s with keys hidden: %v, want what is after a change without a key", text.String(), hide)
		}
	}
	var none *audit.Trail
	none.Add("a", forget(1))
	none.Run(t.Context())
	none.Close()
	if found, err := none.List(t.Context(), "a", 1, time.Time{}); err != nil || len(found.Entries) != 0 {
		t.Errorf("got %v, %v", found, err)
	}
}

// One caller at a time reads the entries of a store, which can take megabytes. Others wait as long as they like.
func TestOneReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		trail := audit.New(audit.Config{Remote: func(ctx context.Context, _ string, _ time.Duration, _ []window.Instant, _ []string, _, _ int) ([]string, error) {
			reads++
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		ctx, cancel := context.WithCancel(t.Context())
		for range 10 {
			go func() { _, _ = trail.List(ctx, "a", 10, time.Time{}) }()
		}
		synctest.Wait()
		if reads != 1 {
			t.Errorf("got %d readers at the same time, want one", reads)
		}
		go func() { _, _ = trail.List(ctx, "b", 10, time.Time{}) }()
		synctest.Wait()
		if reads != 2 {
			t.Errorf("got %d readers, want one of another namespace, too", reads)
		}
		cancel()
		if _, err := trail.List(ctx, "a", 10, time.Time{}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v of a caller that has left", err)
		}
	})
}
