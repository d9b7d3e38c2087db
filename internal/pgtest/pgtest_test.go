package pgtest_test

import (
	"testing"

	"github.com/weirhq/weir/internal/pgtest"
)

// A server that was killed has what was committed.
func TestRestart(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	n.Must("CREATE TABLE kept AS SELECT 42 AS number")
	n.Restart()
	if got := n.Must("SELECT number FROM kept"); got != "42" {
		t.Errorf("got %q, want 42", got)
	}
}
