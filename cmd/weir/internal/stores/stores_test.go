package stores_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/stores"
	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/remote"
	"github.com/weirhq/weir/window"
)

// oneServer starts a server for the row that has a scheme. It returns the URL of the
// server and the same URL with a password.
var oneServer = map[string]func(*testing.T) (url, withPassword string){
	"redis": func(t *testing.T) (url, withPassword string) {
		n := redistest.Server(t)
		n.Must("ACL", "SETUSER", "weir", "on", ">swordfish", "~*", "&*", "+@all")
		return "redis://" + n.Addr(), "redis://weir:swordfish@" + n.Addr()
	},
	"postgres": func(t *testing.T) (url, withPassword string) {
		n := pgtest.Server(t)
		return n.URL(), "postgres://weir:swordfish@" + n.Addr() + "/postgres"
	},
}

// Every row opens a store that counts, and offers what commands and metrics ask for.
func TestRows(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, row := range stores.Rows {
		for _, scheme := range row.Schemes {
			if known[scheme] {
				t.Errorf("%s: is the scheme of two rows", scheme)
			}
			known[scheme] = true
			if _, err := row.Parse(scheme + "://"); err != nil && strings.Contains(err.Error(), "want one of") {
				t.Errorf("%s: got %v, want a scheme that the store knows", scheme, err)
			}
		}
		if scheme, _, _ := strings.Cut(row.Example, "://"); !slices.Contains(row.Schemes, scheme) {
			t.Errorf("example %q: got none of the schemes %v", row.Example, row.Schemes)
		}
		serve := oneServer[row.Schemes[0]]
		if serve == nil {
			t.Errorf("%s: this test knows no server for it", row.Schemes[0])
			continue
		}
		t.Run(row.Schemes[0], func(t *testing.T) {
			t.Parallel()
			url, withPassword := serve(t)
			testRow(t, url, withPassword)
		})
	}
}

func testRow(t *testing.T, url, withPassword string) {
	at, err := stores.Parse(withPassword)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(at.Location, "swordfish") || at.Location == "" || at.Servers == "" {
		t.Errorf("got location %q and servers %q, want both, without the password", at.Location, at.Servers)
	}
	if at, err = stores.Parse(url); err != nil {
		t.Fatal(err)
	}
	s, err := at.Open(t.Context(), stores.Options{Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	op := store.Op{
		Space: store.NewSpace("", "posts", "posts", 0), Key: []byte("ann"), N: 1,
		Limit: window.MustCompile(window.Limit{Quota: 1, Window: window.Ever()}),
	}
	for _, want := range []bool{true, false} {
		ops := []store.Op{op}
		ctx := remote.WithTimeout(t.Context(), 4*time.Second)
		if err := store.Do(ctx, s, store.Take, ops); err != nil || ops[0].Result.Allowed != want {
			t.Errorf("got %v, %v, want %v", ops[0].Result.Allowed, err, want)
		}
	}
	if nodes := s.Nodes(); len(nodes) == 0 || nodes[0].Addr == "" || nodes[0].Unavailable {
		t.Errorf("got nodes %+v, want the server, in reach", nodes)
	}
	findings, err := s.Diagnose(t.Context())
	if err != nil || len(findings) == 0 {
		t.Errorf("got findings %v, %v", findings, err)
	}
	levels := []remote.Level{remote.LevelOK, remote.LevelUnknown, remote.LevelWarn}
	for _, f := range findings {
		if f.Check == "" || f.Node == "" || f.Seen == "" || !slices.Contains(levels, f.Level) {
			t.Errorf("got finding %+v, want a check of a fresh server", f)
		}
	}
	if text, err := s.Inspect(t.Context(), "no such key"); err == nil && text == "" {
		t.Error("got nothing of a key that is not there, want words or an error")
	}
}

// A URL with a scheme of no row is refused without being repeated.
func TestUnknownScheme(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"rdis://:swordfish@host", "swordfish", ""} {
		_, err := stores.Parse(url)
		if err == nil || !strings.Contains(err.Error(), "store.scheme: want one of redis, ") || strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%q: got %v, want the known schemes", url, err)
		}
	}
}

// The local store counts in memory, or loads a directory first.
func TestLocal(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"", t.TempDir()} {
		l, err := stores.OpenLocal(stores.LocalOptions{Dir: dir, Meanwhile: true, Event: func(slog.Level, string) {}})
		if err != nil {
			t.Fatal(err)
		}
		if !l.Await(t.Context()) || !l.Loaded() {
			t.Errorf("%q: got no store that is loaded", dir)
		}
		if kept := l.Kept != nil; kept != (dir != "") || kept != (l.Meanwhile != nil) {
			t.Errorf("%q: got a directory %v and a second table %v", dir, kept, l.Meanwhile != nil)
		}
		ops := []store.Op{{
			Space: store.NewSpace("", "posts", "posts", 0), Key: []byte("ann"), N: 1,
			Limit: window.MustCompile(window.Limit{Quota: 1, Window: window.Ever()}),
		}}
		if err := store.Do(t.Context(), l.Store(), store.Take, ops); err != nil || !ops[0].Result.Allowed {
			t.Errorf("%q: got %v, %v", dir, ops[0].Result, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := stores.OpenLocal(stores.LocalOptions{Dir: "/dev/null/none", Event: func(slog.Level, string) {}}); err == nil || !strings.Contains(err.Error(), "--data: ") {
		t.Errorf("got %v, want an error about --data", err)
	}
}
