package storetest

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/hook"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// exported is what an export says of a key.
type exported struct {
	closed, current         window.Cell
	heldClosed, heldCurrent int64
}

// export returns what an export of the keys in op's space says. It fails t if the store does not
// know a key, or finds a key twice without being allowed to.
func export(t testing.TB, o Opened, op *store.Op) map[string]exported {
	t.Helper()
	all := map[string]exported{}
	lister := hook.ListerOf(o.Store)
	if lister == nil {
		t.Fatalf("%T: lists no keys", o.Store)
	}
	for after, pages := []byte(nil), 0; pages == 0 || after != nil; pages++ {
		var err error
		after, err = lister.Keys(t.Context(), op, after, func(key []byte, state window.State, now window.Instant) {
			if op.Limit.Expires(state) <= now {
				return
			}
			if key == nil {
				t.Errorf("%T: a key of %q is not known", o.Store, op.Space.ID())
			}
			var e exported
			e.closed, e.heldClosed, _ = op.Limit.Exported(state, now, true)
			e.current, e.heldCurrent, _ = op.Limit.Exported(state, now, false)
			if e.closed.Hits > 0 || e.current.Hits > 0 || e.heldClosed > 0 || e.heldCurrent > 0 {
				all[string(key)] = e
			}
		})
		if err != nil {
			t.Fatalf("%T: got error %v", o.Store, err)
		}
		if pages > 100_000 {
			t.Fatalf("%T: an export does not end", o.Store)
		}
	}
	return all
}

// compareExports compares what both stores export. Stores of other programs list no keys.
func (r *random) compareExports(t testing.TB, a, b Opened, at string) {
	t.Helper()
	if hook.ListerOf(a.Store) == nil || hook.ListerOf(b.Store) == nil {
		return
	}
	for name, l := range r.limits {
		if !l.Export {
			continue
		}
		op := store.Op{Space: store.NewSpace("", name, "", 0), Limit: l}
		if gotA, gotB := export(t, a, &op), export(t, b, &op); !maps.Equal(gotA, gotB) {
			for key := range maps.Keys(gotB) {
				if gotA[key] != gotB[key] {
					t.Errorf("%s: export of key %q of %s: got %+v and %+v", at, key, name, gotA[key], gotB[key])
				}
			}
			t.Fatalf("%s: exports of %s: got %d and %d keys, or others", at, name, len(gotA), len(gotB))
		}
	}
}

// The export of a space has each key once, with what it has counted, and no others.
func exportsKeys(s *stage) {
	if hook.ListerOf(s.Store) == nil {
		s.Skip("the store lists no keys")
	}
	l := window.MustCompile(window.Limit{Quota: 1_000_000, Measure: window.Sum, Window: window.Calendar(window.Day, nil), Export: true})
	want := map[string]exported{}
	for i := range 3000 {
		op := hit("s", l, fmt.Sprintf("\x04k%03d\x05a,b c", i%1000))
		op.N = int64(1 + i)
		s.one(store.Take, op)
		e := want[string(op.Key)]
		e.current.Hits += op.N
		want[string(op.Key)] = e
		if i%10 == 0 {
			other := hit("s2", l, string(op.Key))
			s.one(store.Take, other)
		}
	}
	op := store.Op{Space: store.NewSpace("", "s", "", 0), Limit: l}
	got := export(s, s.Opened, &op)
	if len(got) != len(want) {
		s.Errorf("got %d keys, want %d", len(got), len(want))
	}
	for key, w := range want {
		if g := got[key]; g.current.Hits != w.current.Hits {
			s.Errorf("key %q: got %d, want %d", key, g.current.Hits, w.current.Hits)
		}
	}
}

// Records of holds count in the closed period of their takes, once they end or are over, also under a limit that holds nothing.
func exportsClosed(s *stage) {
	if hook.ListerOf(s.Store) == nil {
		s.Skip("the store lists no keys")
	}
	for name, quota := range map[string]int64{"limit": 200, "counter": window.Unlimited} {
		l := window.Limit{Quota: quota, Measure: window.Sum, Window: window.Calendar(window.Hour, nil), Export: true}
		plain := window.MustCompile(l)
		l.Quota, l.Hold = window.MaxHits, time.Minute
		holding := window.MustCompile(l)
		s.at(0)
		s.one(store.Record, times(100, hit(name, plain, "known")))
		s.at(time.Hour + time.Minute)
		for _, key := range []string{"known", "new"} {
			op := named("a", times(70, hit(name, holding, key)))
			op.Hold.At, op.Hold.End = start.Add(30*time.Minute), start.Add(time.Hour+2*time.Minute)
			if r := s.one(store.Record, op); !r.Held {
				s.Errorf("%s, %s: got %+v, want 70 held", name, key, r)
			}
			s.one(store.Settle, op)
			op.N, op.Hold.ID[0] = 7, 'b'
			s.one(store.Record, op) // ends by itself
			s.one(store.Take, times(2, hit(name, plain, key)))
		}
		s.at(time.Hour + 3*time.Minute)
		for key, e := range export(s, s.Opened, &store.Op{Space: store.NewSpace("", name, "", 0), Limit: plain}) {
			want := int64(77)
			if key == "known" {
				want += 100
			}
			if e.closed.Hits != want || e.heldClosed != 0 || e.current.Hits != 2 || e.heldCurrent != 0 {
				s.Errorf("%s, %s: got %+v, want %d in the closed period and 2 in this one", name, key, e, want)
			}
		}
	}
}
