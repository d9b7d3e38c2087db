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
