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
		for p.Take(namespace) {
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
	p.Leave("")
	take("c", 0)
	p.Leave("a")
	take("c", 1)
	take("", 1)
}
