package report_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/report"
	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// sealedUnder returns a receipt for the hold of holdOf(op, n).
func sealedUnder(secret byte, n int) string {
	var key seal.Key
	key.Use(seal.Secret{secret})
	return key.Seal(seal.Take{ID: [12]byte{byte(n), byte(n >> 8), 1}, At: 1, Wall: 1}).String()
}

// The end of a hold whose receipt cannot be judged is sent when its secret is known, by the next process, too. A receipt whose
// secret stays unknown ends nothing.
func TestUnprovenEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, side := newFar(), &sideStore{blobs: map[string][]byte{}}
		f.secrets.Store(&[][16]byte{{1}})
		limit := window.MustCompile(window.Limit{Quota: 5, Window: window.Held(time.Hour)})
		op := of(limit, "ann", "")
		for n := range 3 {
			take := holdOf(op, n)
			take.N = 1
			if err := store.Do(t.Context(), f, store.Take, []store.Op{*take}); err != nil {
				t.Fatal(err)
			}
		}
		f.gone("circuit-open")
		r := report.New(f, side)
		for range 2 { // the second one changes nothing
			for n := range 2 {
				r.EndUnproven(op, 0, sealedUnder(2, n))
			}
			r.EndUnproven(op, 0, sealedUnder(3, 2))
		}
		wantStats(t, r, report.Stats{Pending: 3})
		time.Sleep(time.Minute)
		r.Close()

		r = report.New(f, side)
		defer r.Close()
		synctest.Wait()
		wantStats(t, r, report.Stats{Pending: 3})
		f.back()
		time.Sleep(5 * time.Second)
		f.wants(t, op, 3)
		wantStats(t, r, report.Stats{Pending: 3})
		f.secrets.Store(&[][16]byte{{1}, {2}})
		time.Sleep(2 * time.Second)
		f.wants(t, op, 1)
		time.Sleep(10 * time.Second)
		f.wants(t, op, 1)
		wantStats(t, r, report.Stats{})
		if side.write(); side.left() != 0 {
			t.Errorf("got %d blobs, want none", side.left())
		}
	})
}
