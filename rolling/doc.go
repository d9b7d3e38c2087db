// Package rolling keeps statistics of a program's own hot paths: how often
// something happened lately, how much it came to, the least and the most, over
// a [Window] cut in buckets that rolls along with time. It knows no keys and no
// limits; counts per key, and limits, are in package weir.
//
// # What counts
//
// A window of n buckets holds the running bucket and the n-1 before it. A hit
// leaves together with its bucket: it is inside for at least n-1 and at most n
// buckets' lengths. Buckets are lined up with the window's making and are timed
// by the machine's monotonic clock, so that setting the wall clock does no harm.
// Every call reads the clock once.
//
// # Writing without a lock
//
// The buckets are a list, newest first. A bucket only ever takes hits in, each
// of its numbers by one atomic step. It is never emptied, and never used for a
// second stretch of time: whoever finds that the newest bucket is over makes
// another one, with the hit already in it, and puts it in front by a single
// compare-and-swap. Whoever loses that race adds to the winner's bucket.
//
// So no hit is lost: there is no moment at which a bucket is cleared, and none
// at which it is there and not ready. None is counted twice: a hit is either
// added to one bucket or published with one. A writer that falls asleep before
// it adds, for however long, still adds to the bucket that was the newest one
// during its call; when that has left the window meanwhile, so has the hit. The
// garbage collector frees a bucket when no writer or reader can reach it any
// more, which is why [Window.Add] needs neither counters of who is inside nor
// time to pass before something may be reused. The price is one allocation of 64
// bytes by the Add that opens a bucket; all others allocate nothing.
//
// # What a reader sees
//
// Reads take no lock either, and never wait. A read returns a set of hits, each
// once:
//
//   - certainly every hit whose Add had returned before the read began, if its
//     bucket was inside the window until the read ended;
//   - perhaps hits whose Add was under way during the read, and hits whose bucket
//     left the window during the read;
//   - never a hit whose Add began after the read had ended, nor one whose bucket
//     had left before the read began.
//
// A hit's bucket is one that was running at some moment between the call of Add
// and its return. Sum, least and most of a bucket have at least the hits that
// its count has: a hit is counted last, and the count is read first.
package rolling
