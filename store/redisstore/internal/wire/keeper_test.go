package wire_test

import (
	"errors"
	"testing"

	"github.com/weirhq/weir/store/redisstore/internal/wire"
)

// Each time in which a node is cut off is passed on with its start and its end, also
// one that is over when the keeper looks. One that begins before the end of another
// was passed on belongs to it.
func TestReportsShortOutages(t *testing.T) {
	t.Parallel()
	var got []bool
	k := wire.NewKeeper(func(c wire.Change) {
		if got = append(got, c.CutOff); c.CutOff && !errors.Is(c.Err, wire.ErrCutOff) {
			t.Errorf("got the reason %v, want %v", c.Err, wire.ErrCutOff)
		}
	})
	for _, step := range []struct {
		do   string // t: the breaker opens, a: the node answers, r: the keeper looks
		want int    // changes so far
	}{
		{"r", 0}, {"ta", 0}, {"r", 2}, {"r", 2}, {"t", 2}, {"r", 3}, {"r", 3}, {"at", 3}, {"r", 3}, {"a", 3}, {"r", 4}, {"r", 4},
	} {
		for _, c := range step.do {
			switch c {
			case 't':
				k.Trip()
			case 'a':
				k.Answered()
			default:
				k.Report()
			}
		}
		if len(got) != step.want {
			t.Fatalf("after %s: got %d changes, want %d", step.do, len(got), step.want)
		}
	}
	for i, out := range got {
		if out != (i%2 == 0) {
			t.Errorf("change %d: got cut off %v, want starts and ends in turns", i, out)
		}
	}
}
