package datadir_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/datadir"
	"github.com/weirhq/weir/store"
)

// BenchmarkLosses measures what an end at a random instant costs: of 10,000 hits a second
// that were answered, the most that the next process does not know, in hits and in
// milliseconds of that load. The loss of power drops what was not synced, or parts of it;
// syncing takes no time on this disk.
func BenchmarkLosses(b *testing.B) {
	const rate = 10_000
	for _, sync := range datadir.Syncs() {
		for _, end := range []string{"kill", "power"} {
			b.Run(fmt.Sprintf("%s/%s", sync, end), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 7))
				most := int64(0)
				for b.Loop() {
					disk := datadir.NewDisk()
					s := mustOpen(b, disk, datadir.WithSync(sync), datadir.WithInterval(datadir.DefaultInterval))
					var answered, kept int64
					begun, length := time.Now(), time.Duration(300+r.IntN(1000))*time.Millisecond
					for passed := time.Duration(0); passed < length; passed = time.Since(begun) {
						for due := int64(passed.Seconds() * rate); answered < due; answered++ {
							key := fmt.Sprint(answered % keysUsed)
							if _, err := one(b.Context(), s, store.Take, space, ever, key, "", 1); err != nil {
								b.Fatal(err)
							}
						}
						time.Sleep(100 * time.Microsecond)
					}
					left := disk.Clone()
					if end == "power" {
						left = disk.PowerLoss(r)
					}
					if err := s.Close(); err != nil {
						b.Fatal(err)
					}
					next := mustOpen(b, left)
					for key := range keysUsed {
						kept += usedOf(b, next, key)
					}
					if err := next.Close(); err != nil {
						b.Fatal(err)
					}
					if kept > answered {
						b.Fatalf("got %d hits after the end, want at most %d", kept, answered)
					}
					most = max(most, answered-kept)
				}
				b.ReportMetric(float64(most), "hits-lost")
				b.ReportMetric(float64(most)/rate*1000, "ms-lost")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
