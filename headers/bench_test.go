package headers_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/weirhq/weir/headers"
)

func BenchmarkSet(b *testing.B) {
	for _, dialect := range []headers.Dialect{headers.Draft, headers.Legacy} {
		b.Run(string(dialect), func(b *testing.B) {
			h := http.Header{}
			l := headers.Limits{Policies: []headers.Policy{{Name: "posts", Quota: 5, Remaining: 4, Window: time.Hour, ResetAfter: time.Hour}}}
			b.ReportAllocs()
			for b.Loop() {
				headers.Format{Dialect: dialect}.Set(h, &l)
			}
		})
	}
}

// The fields of an answer cost two allocations, however many they are.
func TestSetAllocates(t *testing.T) {
	h := http.Header{}
	l := headers.Limits{RetryAfter: time.Second, Policies: []headers.Policy{{Name: "posts", Quota: 5, Window: time.Hour, RetryAfter: time.Second}}}
	for _, dialect := range headers.Dialects() {
		if n := testing.AllocsPerRun(100, func() { headers.Format{Dialect: headers.Dialect(dialect)}.Set(h, &l) }); n > 2 {
			t.Errorf("%v: got %v allocations, want two", dialect, n)
		}
	}
}
