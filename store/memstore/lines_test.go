package memstore_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/memstore"
	"github.com/weirhq/weir/window"
)

// TestLines checks which cache lines a call writes to. Two cores that decide calls of
// different keys slow each other down where they write to the same line, or where one
// writes what the other reads.
func TestLines(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	space := store.NewSpace("", "s", "", 0)
	limit := window.MustCompile(window.Limit{Quota: 10, Window: window.Fixed(time.Minute)})
	ops := []byte("a key of each shard")
	for i := range 256 {
		ops[0] = byte(i)
		if _, err := one(t.Context(), s, store.Take, space, limit, string(ops), "", 1); err != nil {
			t.Fatal(err)
		}
	}
	for _, fault := range memstore.LineFaults(memstore.KeyspaceOf(s, space)) {
		t.Error(fault)
	}
}
