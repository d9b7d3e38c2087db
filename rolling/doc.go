// Package rolling keeps statistics of a program's own hot paths: count, sum,
// minimum and maximum of recent hits, over a [Window] of buckets that moves with
// time. It has no keys and no limits. For counts per key, and for limits, use
// package weir.
//
// # What a window holds
//
// A window of n buckets holds the running bucket and the n-1 buckets before it. A
// hit leaves the window with its bucket. It is inside for at least n-1 and at most
// n lengths of a bucket. Buckets start at multiples of their length after the
// creation of the window. Their clock is the machine's monotonic clock, so setting
// the wall clock changes nothing. Every call reads the clock once.
//
// # Writing without a lock
//
// The buckets are a list, newest first. Hits are only ever added to a bucket, and
// each of its numbers changes by one atomic operation. A bucket is never cleared
// and never reused for another time. A writer that finds the newest bucket
// complete makes another one that already has its hit, and prepends it by a single
// compare-and-swap. A writer that loses this race adds its hit to the winner's bucket.
//
// No hit is lost, because a bucket is never cleared, and is ready when it becomes
// visible. No hit is counted twice, because a hit is either added to one bucket or
// published with one. A writer that sleeps before it adds, for however long, still
// adds to the bucket that was the newest during its call. If that bucket has left
// the window by then, the hit has left, too. The garbage collector frees a bucket
// when no writer or reader can reach it. [Window.Add] therefore needs no count of
// the writers inside, and no delay before a bucket is reused. The price is one
// allocation of 64 bytes in the Add that opens a bucket. Other calls of Add do not
// allocate.
//
// # What a read counts
//
// Reads take no lock, and never wait. A read counts no hit twice. It counts
//
//   - every hit whose Add returned before the read began, if the hit's bucket
//     stays inside the window until the read ends;
//   - possibly hits whose Add runs during the read, and hits whose bucket leaves
//     the window during the read;
//   - no hit whose Add began after the read ended, and none whose bucket left the
//     window before the read began.
//
// A hit's bucket was running at some moment between the call of Add and its
// return. The sum, the minimum and the maximum of a bucket include every hit in
// its count, because Add changes the count last and a read reads it first.
package rolling
