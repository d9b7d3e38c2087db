package access_test

import (
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/access"
)

// Callers of one namespace, and those of all namespaces together, leave places for others.
func TestPlaces(t *testing.T) {
	t.Parallel()
	p := access.NewPlaces(8)
	take := func(namespace string, want int) {
		t.Helper()
		got := 0
		for p.Take(namespace, 1) {
			got++
		}
		if got != want {
			t.Errorf("%q: got %d places, want %d", namespace, got, want)
		}
	}
	take("a", 4)
	take("b", 2)
	take("c", 0)
	take("", 2)
	p.Leave("", 1)
	take("c", 0)
	p.Leave("a", 1)
	take("c", 1)
	take("", 1)
	if taken := p.Taken(); taken != 8 {
		t.Errorf("got %d places taken, want 8", taken)
	}
}

// What one caller has reserved, with or without all rights, counts for its own part until it is freed, whoever has
// the reservation then.
func TestReservationsByCaller(t *testing.T) {
	t.Parallel()
	limits := &access.ResourceLimits{Memory: 8 << 10}
	ann, bob := &access.Holder{Namespace: "ann"}, &access.Holder{Namespace: "bob"}
	reserve := func(r *access.Reservation, kib int64, want bool) {
		t.Helper()
		if err := r.Reserve(kib << 10); (err == nil) != want {
			t.Errorf("%d KiB: got %v, want them reserved: %t", kib, err, want)
		}
	}
	first, second := access.Reservation{Resources: limits, Caller: ann}, access.Reservation{Resources: limits, Caller: ann}
	reserve(&first, 3, true)
	first.Caller = bob // the connection has another caller
	reserve(&first, 2, false)
	reserve(&second, 2, false)
	reserve(&second, 1, true)
	others := access.Reservation{Resources: limits, Caller: bob}
	reserve(&others, 3, false)
	reserve(&others, 2, true)
	all := access.Reservation{Resources: limits}
	reserve(&all, 3, false)
	reserve(&all, 2, true)
	first.Shrink(1 << 10)
	reserve(&second, 2, true)
	for _, r := range []*access.Reservation{&first, &second, &others, &all} {
		r.Free()
	}
	if _, bytes := limits.Now(); bytes != 0 {
		t.Errorf("got %d bytes reserved, want none", bytes)
	}
}
