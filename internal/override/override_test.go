package override_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/weirhq/weir/internal/override"
)

// Sets have what a map has after the same changes, and earlier sets stay as they were.
func TestAgreesWithMap(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	shapes := [][]string{{"a"}, {"b"}, {"a", "b"}, {"a", "b", "c"}}
	type key struct {
		rule, shape, key string
	}
	want := map[key]override.Limit{}
	var set, before *override.Set
	var wanted map[key]override.Limit
	for turn := range 300 {
		var changes []override.Change
		for range r.IntN(40) {
			c := override.Change{
				Rule: fmt.Sprint("rule", r.IntN(2)), Attributes: shapes[r.IntN(4)], Key: fmt.Sprint(r.IntN(1500)),
				Limit: override.Limit{Quota: r.Int64N(50)}, Remove: r.IntN(8) == 0 || turn > 280,
			}
			changes = append(changes, c)
			k := key{c.Rule, fmt.Sprint(c.Attributes), c.Key}
			if want[k] = c.Limit; c.Remove {
				delete(want, k)
			}
		}
		if turn == 200 {
			before, wanted = set, maps.Clone(want)
			for i := range changes {
				delete(wanted, key{changes[i].Rule, fmt.Sprint(changes[i].Attributes), changes[i].Key})
			}
		}
		set = set.With(changes)
	}
	check := func(s *override.Set, want map[key]override.Limit) {
		t.Helper()
		got := map[key]override.Limit{}
		for _, name := range []string{"rule0", "rule1"} {
			ru := s.Rule(name)
			if ru == nil {
				continue
			}
			for n, s := range ru.Shapes {
				if n > 0 && len(s.Attributes) > len(ru.Shapes[n-1].Attributes) {
					t.Error("a shape is after one with fewer attributes")
				}
				count := 0
				s.Keys(func(text string) bool {
					count++
					limit, ok := s.Get([]byte(text))
					if !ok {
						t.Errorf("got no limit of key %s", text)
					}
					got[key{name, fmt.Sprint(s.Attributes), text}] = ru.Limits[limit]
					return true
				})
				if s.Len() != count {
					t.Errorf("got a length of %d for %d keys", s.Len(), count)
				}
			}
		}
		for k, l := range want {
			if got[k] != l {
				t.Fatalf("%v: got %v, want %v", k, got[k], l)
			}
		}
	}
	check(set, want)
	check(before, wanted)
	if ru := set.Rule("rule0"); ru != nil && len(ru.Limits) > 2*1500*4+16 {
		t.Errorf("got %d limits", len(ru.Limits))
	}
	var none *override.Set
	if none.Rule("x") != nil || none.With(nil).Rule("x") != nil {
		t.Error("got overrides of nothing")
	}
}
