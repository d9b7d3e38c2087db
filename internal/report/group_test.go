package report_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/report"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// What one Reporter has pending changes with what its group does: the first one restores the keys of all engines, and an
// engine that was replaced may still report. The bans of the rules in force are those of the namespace of the key.
func TestGroup(t *testing.T) {
	t.Parallel()
	holding := window.MustCompile(window.Limit{Quota: 50, Measure: window.Sum, Window: window.Sliding(time.Hour), Hold: time.Minute, Release: true})
	once := window.Limit{Quota: 1, Window: window.Sliding(time.Hour)}
	before := window.MustCompile(once)
	once.Ban = window.Ban{For: 2 * time.Hour}
	banning := window.MustCompile(once)
	synctest.Test(t, func(t *testing.T) {
		f, g := newFar(), &report.Group{}
		first, second := report.New(f, nil, g), report.New(f, nil, g)
		defer first.Close()
		sam := of(banning, "sam", "")
		for range 2 {
			sam.N = 1
			if err := store.Do(t.Context(), f, store.Take, []store.Op{*sam}); err != nil {
				t.Fatal(err)
			}
		}
		f.gone("circuit-open")
		settled, renewed := of(holding, "settled", ""), of(holding, "renewed", "")
		for i, op := range []*store.Op{settled, renewed} {
			op.Hold = &store.Hold{Hold: window.Hold{ID: [12]byte{byte(i + 1)}}}
			op.Hold.Decided = window.At(time.Now())
			first.Hold(op, holding, 9, false)
		}
		ann, bob := of(hourly, "ann", ""), of(hourly, "bob", "")
		first.Add(ann, hourly, 5)
		first.Add(bob, hourly, 3)
		first.Add(sam, before, 1)
		second.Add(ann, hourly, 2)

		time.Sleep(30 * time.Second)
		second.End(settled, 4)
		renewed.Hold.Decided = window.At(time.Now())
		second.Renew(renewed)
		second.Sub(ann, 4)
		second.Forget(bob)
		second.UseBans("", map[string]window.Ban{posts.ID(): banning.Ban})
		f.back()
		time.Sleep(2 * time.Second)
		f.wants(t, settled, 4)
		f.wants(t, ann, 3)
		f.wants(t, bob, 0)
		if r, err := f.Store.Read(t.Context(), sam); err != nil || !r.Banned {
			t.Errorf("got %+v, %v, want a ban", r, err)
		}
		time.Sleep(45 * time.Second)
		f.wants(t, renewed, 9)
		second.Close()
		time.Sleep(time.Minute)
		f.wants(t, renewed, 0)
	})
}
