// Package top reports, for each rule, which keys use it most, which keys it
// denies most, and its recent denials. A [Collector] learns of decisions through
// a [weir.Observer] and holds a bounded amount of memory, whatever the traffic.
//
// # Error
//
// The counts are exact until one of two limits is reached.
//
// A [Sketch] has a capacity of k keys. A further key replaces the key with the lowest
// count, and inherits that count as its error. A count
// is never too low and at most N/k too high, where N is the sum of all counts.
// Every key with more than N/k is in the sketch. See A. Metwally, D. Agrawal and
// A. El Abbadi, Efficient Computation of Frequent and Top-k Elements in Data
// Streams, ICDT 2005.
//
// Above some 10,000 decisions a second a collector reads a sample: one decision
// in 2, 4, 8, …, and counts each as that many. With one in s, a count of c that
// consists of hits of one each has a standard deviation of √((s-1)·c). Decisions
// that deny are sampled separately, so that few denials among many decisions stay
// exact.
//
// # Time
//
// Counts cover the current and the previous period of five minutes. When a
// period ends, the counts of the previous one are dropped.
//
// # Locks
//
//   - lane.mu guards the rows that decisions append to. It is held for one copy.
//   - shared.mu guards the sketches and rings. Decisions never take it.
//   - decisions.mu guards the denials that are kept whole. A denial takes it, and readers hold it only to copy the list.
//
// If the goroutine that reads rows falls behind and a collector has no free rows, it drops
// decisions and counts them in [Collector.Missed].
package top
