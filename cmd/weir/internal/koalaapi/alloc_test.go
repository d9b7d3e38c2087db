//go:build !race

// The race detector makes sync.Pool forget at random, so this runs without it.

package koalaapi_test

import "testing"

func TestBrowseAllocatesNothing(t *testing.T) {
	b := newBench(t, "rules: [{name: koala-1, code: 1, when: {act: ask}, per: [uid], limit: 1000000, window: {fixed: 1h}}]")
	for _, uri := range []string{"/rule/browse?act=ask&uid=7", "/rule/browse?act=ask&uid=7&_writeThrough=yes", "/rule/update?act=ask&uid=7"} {
		ask, w := b.asker(t, uri)
		if n := testing.AllocsPerRun(1000, ask); n != 0 {
			t.Errorf("%s: got %v allocations, want none", uri, n)
		}
		if w.length == 0 {
			t.Errorf("%s: got no answer", uri)
		}
	}
}
