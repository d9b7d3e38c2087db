package memstore_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// A key that is called often, and so becomes hot, is banned like any other, and
// what is held and ended by others is seen at once.
func TestHotKeysHoldAndBan(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]window.Window{
		"fixed": window.Fixed(time.Hour), "bucket": window.Bucket(time.Hour, 0), "calendar": window.Calendar(window.Day, nil), "sliding": window.Sliding(time.Hour),
	} {
		o := open(t)
		o.Set(1e15)
		ban := hit("ban "+name, window.MustCompile(window.Limit{Quota: 1000, Window: w, Ban: window.Ban{For: time.Minute}}), "k")
		hold := hit("hold "+name, window.MustCompile(window.Limit{Quota: 1000, Window: w, Hold: time.Minute}), "k")
		take := func(op store.Op) window.Result {
			t.Helper()
			ops := []store.Op{op}
			if err := store.Do(t.Context(), o.Store, store.Take, ops); err != nil {
				t.Fatal(err)
			}
			return ops[0].Result
		}
		for i := range 3000 {
			if r := take(ban); r.Allowed != (i < 1000) || r.Banned != (i >= 1000) {
				t.Fatalf("%s, take %d: got %+v, want banned from the 1001st on", name, i, r)
			}
		}
		o.Set(1e15 + 60e6)
		if r := take(ban); !r.Allowed || r.Used != 1 {
			t.Errorf("%s: got %+v after the ban, want an empty window", name, r)
		}
		hold.Hold = &store.Hold{Hold: window.Hold{ID: [12]byte{1}}}
		if r := take(hold); !r.Held {
			t.Fatalf("%s: got %+v, want held", name, r)
		}
		hold.Hold = nil
		for i := range 3000 {
			if r := take(hold); r.Allowed != (i < 999) {
				t.Fatalf("%s, take %d beside a hold: got %+v, want 999 admitted", name, i, r)
			}
		}
		hold.Hold = &store.Hold{Hold: window.Hold{ID: [12]byte{1}}}
		ops := []store.Op{hold}
		if err := store.Do(t.Context(), o.Store, store.Cancel, ops); err != nil || !ops[0].Result.Held {
			t.Fatalf("%s: got %+v and error %v, want the hold found", name, ops[0].Result, err)
		}
		hold.Hold = nil
		if r := take(hold); !r.Allowed {
			t.Errorf("%s: got %+v after the cancel, want allowed", name, r)
		}
	}
}
