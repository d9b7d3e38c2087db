package memstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// Whatever way a call takes, and whatever the window, the journal visits each key that it
// has counted.
func TestJournalNotesEveryWay(t *testing.T) {
	t.Parallel()
	limits := []window.Limit{
		{Quota: 1000, Window: window.Sliding(time.Hour)},
		{Quota: 50, Window: window.Sliding(time.Hour)},
		{Quota: 1000, Window: window.Cells(time.Hour, 6)},
		{Quota: 1000, Window: window.Fixed(time.Hour)},
		{Quota: 1000, Window: window.Calendar(window.Day, nil)},
		{Quota: 1000, Window: window.Bucket(time.Hour, 1000)},
		{Quota: 1000, Window: window.Ever()},
		{Quota: 1000, Window: window.Sliding(time.Hour), After: window.After{Count: 2, Window: window.Fixed(time.Hour)}},
		{Quota: 1000, Window: window.Sliding(time.Hour), Ban: window.Ban{For: time.Hour}},
		{Quota: 1000, Window: window.Sliding(time.Hour), Hold: time.Hour},
	}
	for _, l := range limits {
		for ways := range 4 {
			t.Run(fmt.Sprintf("%+v/%d", l, ways), func(t *testing.T) {
				t.Parallel()
				tracksEveryWay(t, window.MustCompile(l), ways)
			})
		}
	}
}

// tracksEveryWay counts in one of several ways, again and again, and compares what the
// journal has visited after each of them.
func tracksEveryWay(t *testing.T, limit *window.Compiled, way int) {
	s := memstore.New(memstore.WithJournal(secret))
	defer s.Close()
	seen, changes := newCopy(), s.Journal().Changes()
	spaces := []*store.Space{store.NewSpace("", "a", "a", 0), store.NewSpace("", "b", "b", 0), store.NewSpace("", "c", "c", 0)}
	var ops []store.Op
	for i, space := range spaces {
		op := store.Op{Space: space, Limit: limit, Key: []byte("k"), N: 1}
		if i == 2 {
			op.Role = store.Shadow
		}
		ops = append(ops, op)
	}
	used := spaces[:1]
	for hit := int64(1); hit <= 40; hit++ {
		var err error
		switch way {
		case 0:
			_, err = one(t.Context(), s, store.Take, spaces[0], limit, "k", "", 1)
		case 1:
			err = s.Decide(t.Context(), store.Take, ops[:2])
			used = spaces[:2]
		case 2:
			err = s.Decide(t.Context(), store.Take, ops)
			used = spaces
		case 3:
			err = store.Do(t.Context(), s, store.Record, ops)
			used = spaces
		}
		if err != nil {
			t.Fatal(err)
		}
		seen.read(changes.Next)
		next := memstore.New(memstore.WithJournal(secret))
		next.Journal().Resume(s.Journal().Times())
		seen.restore(next)
		for _, space := range used {
			op := &store.Op{Space: space, Limit: limit, Key: []byte("k")}
			want, err := s.Read(t.Context(), op)
			if err != nil {
				t.Fatal(err)
			}
			got, err := next.Read(t.Context(), op)
			if err != nil || got.Used != want.Used {
				t.Fatalf("hit %d, space %s: got %d used from the journal, %v, want %d", hit, space.Name(), got.Used, err, want.Used)
			}
		}
		next.Close()
	}
}
