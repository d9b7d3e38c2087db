package replay

import (
	"time"

	"github.com/weirhq/weir/window"
)

// Timeline holds numbers over time, in buckets of equal length.
type Timeline struct {
	// Start is the start of the first bucket, and Seconds the length of each.
	Start   time.Time `json:"start"`
	Seconds int64     `json:"seconds"`

	// Allowed and Denied are the requests in each bucket.
	Allowed []int64 `json:"allowed"`
	Denied  []int64 `json:"denied"`
}

const (
	// mostBuckets is the maximum number of buckets of a timeline. With more they get longer.
	mostBuckets = 512
	// mostHours is the maximum number of buckets of an hour: those of a year.
	mostHours = 366 * 24
)

// widths are the lengths of buckets, in seconds. Each divides the next one.
var widths = []int64{1, 5, 10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600, 7 * 24 * 3600, 28 * 24 * 3600, 364 * 24 * 3600, 3640 * 24 * 3600}

// timeline collects a Timeline in bounded memory: its buckets grow with the
// length of the log.
type timeline struct {
	width   int // index in widths
	most    int64
	first   int64 // number of the first bucket since the epoch
	buckets []bucket
	last    *bucket // the bucket of the last request, or nil

	// from and to bound the instants of last. Most requests are in this bucket, and need
	// no division to find it.
	from, to window.Instant
}

type bucket struct{ allowed, denied int64 }

// newTimeline returns a timeline with at most most buckets, of widths[width] or
// longer.
func newTimeline(width, most int) *timeline { return &timeline{width: width, most: int64(most)} }

// add counts one request.
func (l *timeline) add(now window.Instant, allowed bool) {
	b := l.last
	if b == nil || now < l.from || now >= l.to {
		b = l.at(now)
	}
	if allowed {
		b.allowed++
	} else {
		b.denied++
	}
}

// at returns the bucket of an instant, which becomes the last one.
func (l *timeline) at(now window.Instant) *bucket {
	for {
		width := widths[l.width] * 1e6
		n := floorDiv(int64(now), width)
		if len(l.buckets) == 0 {
			l.first, l.buckets = n, append(l.buckets, bucket{})
		}
		from, to := min(l.first, n), max(l.first+int64(len(l.buckets)), n+1)
		if to-from > l.most && l.width+1 < len(widths) {
			l.widen()
			continue
		}
		if from < l.first {
			l.buckets = append(make([]bucket, l.first-from), l.buckets...)
			l.first = from
		}
		for l.first+int64(len(l.buckets)) < to {
			l.buckets = append(l.buckets, bucket{})
		}
		l.last, l.from, l.to = &l.buckets[n-l.first], window.Instant(n*width), window.Instant((n+1)*width)
		return l.last
	}
}

// widen moves the counts into longer buckets.
func (l *timeline) widen() {
	old := l.buckets
	ratio := widths[l.width+1] / widths[l.width]
	first := floorDiv(l.first, ratio)
	buckets := make([]bucket, floorDiv(l.first+int64(len(old))-1, ratio)-first+1)
	for i, b := range old {
		to := &buckets[floorDiv(l.first+int64(i), ratio)-first]
		to.allowed, to.denied = to.allowed+b.allowed, to.denied+b.denied
	}
	l.width, l.first, l.buckets, l.last = l.width+1, first, buckets, nil
}

// floorDiv returns n/by, rounded down.
func floorDiv(n, by int64) int64 {
	q := n / by
	if n%by < 0 {
		q--
	}
	return q
}

// report returns the counts, or nil if there are none.
func (l *timeline) report() *Timeline {
	if len(l.buckets) == 0 {
		return nil
	}
	seconds := widths[l.width]
	t := &Timeline{
		Start: time.Unix(l.first*seconds, 0).UTC(), Seconds: seconds,
		Allowed: make([]int64, len(l.buckets)), Denied: make([]int64, len(l.buckets)),
	}
	for i, b := range l.buckets {
		t.Allowed[i], t.Denied[i] = b.allowed, b.denied
	}
	return t
}
