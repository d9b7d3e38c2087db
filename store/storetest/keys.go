package storetest

import (
	"fmt"

	"github.com/weirhq/weir/store"
)

// Each op gets its own result, whatever the order of keys and spaces.
func resultsInOrder(s *stage) {
	var ops []store.Op
	for i := range int64(6) {
		// Neither the keys nor the spaces are in any order.
		ops = append(ops, times(i+1, hit(fmt.Sprint("space", i*5%6), hourly(10+i), fmt.Sprint("k", i*7%6))))
	}
	for i, r := range s.do(store.Take, ops...) {
		if r.Quota != int64(10+i) || r.Used != int64(i+1) {
			s.Errorf("op %d: got %d of %d used, want %d of %d", i, r.Used, r.Quota, i+1, 10+i)
		}
	}
}

// Keys and IDs of spaces are bytes. No two pairs of them share a counter.
func keysAreApart(s *stage) {
	limit := hourly(5)
	keys := []string{"", "a", "b", "ab", "a\x00", "\x00a", "a:b", "{a}", "A", "\xff"}
	spaces := []string{"", "a", "a:", "b", "ab"}
	for _, space := range spaces {
		for _, key := range keys {
			if r := s.one(store.Take, hit(space, limit, key)); r.Before != 0 || r.Used != 1 {
				s.Errorf("first take of %q in %q: got %d before and %d used, want 0 and 1", key, space, r.Before, r.Used)
			}
		}
	}
	for _, space := range spaces {
		for _, key := range keys {
			s.used(1, hit(space, limit, key))
		}
	}
}

// Spaces with equal IDs are the same, although made twice.
func spacesByID(s *stage) {
	s.one(store.Take, hit("same", hourly(5), "k"))
	s.used(1, hit("same", hourly(5), "k")) // through another pointer
}

// A call may have more ops than a store handles without allocating, and a call
// without ops counts nothing.
func manyOps(s *stage) {
	var ops []store.Op
	for i := range 100 {
		ops = append(ops, hit(fmt.Sprint("space", i%7), hourly(2), fmt.Sprint("k", i)))
	}
	for want := range int64(3) {
		for i, r := range s.do(store.Take, ops...) {
			if allowed := want < 2; r.Allowed != allowed || r.Used != min(want+1, 2) {
				s.Fatalf("take %d, op %d: got allowed %v with %d used, want %v with %d",
					want, i, r.Allowed, r.Used, allowed, min(want+1, 2))
			}
		}
	}
	if err := store.Do(s.Context(), s.Store, store.Take, nil); err != nil {
		s.Errorf("no ops: got error %v, want none", err)
	}
}
