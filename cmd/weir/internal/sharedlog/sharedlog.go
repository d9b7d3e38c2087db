// Package sharedlog reads the logs that instances share in a store, so that decisions do not wait for it.
package sharedlog

import (
	"context"
	"time"

	"github.com/weirhq/weir/internal/export"
	"github.com/weirhq/weir/window"
)

const (
	// Size is how many entries a log has at most.
	Size = 10_000

	// Time is how long a caller may take to read logs. The service must answer in 10 s.
	Time = 8 * time.Second

	// page is how many entries one command reads. Redis decides nothing meanwhile.
	page = 250
)

// Log adds entries to a log, none older than age, and returns its newest n but for the newest skip, the
// oldest one first; see package redisstore.
type Log func(ctx context.Context, name string, age time.Duration, at []window.Instant, entries []string, skip, n int) ([]string, error)

// Newest calls each with the newest entries of a log, at most so many, the newest one first, until it
// returns false. It uses the store as pace allows. It reports whether these are all that the log has.
func (l Log) Newest(ctx context.Context, name string, most int, pace *export.Pace, each func(entry string) bool) (all bool, err error) {
	seen := map[string]bool{} // entries that are added meanwhile make pages overlap
	n := min(page, most)
	for skip := 0; skip < Size && len(seen) < most; skip += n {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		began := time.Now()
		entries, err := l(ctx, name, 0, nil, nil, skip, n)
		if err == nil {
			err = pace.Rest(ctx, time.Since(began))
		}
		if err != nil {
			return false, err
		}
		for i := len(entries) - 1; i >= 0 && len(seen) < most; i-- {
			if seen[entries[i]] {
				continue
			}
			seen[entries[i]] = true
			if !each(entries[i]) {
				return false, nil
			}
		}
		if len(entries) < n {
			return true, nil
		}
	}
	return most >= Size, nil
}
