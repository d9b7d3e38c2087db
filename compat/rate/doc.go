// Package rate has the API of golang.org/x/time/rate, and a time that never goes back. A
// program that uses x/time/rate changes the import, and nothing else:
//
//	import "github.com/weirhq/weir/compat/rate" // was "golang.org/x/time/rate"
//
// A [Limiter] is a token bucket for one flow of events in one process: so many events a
// second on average, and so many at once. For a limit per user or address, counts that
// processes share, or several limits at once, use package weir.
//
// # What is the same
//
// Everything that x/time/rate exports is here under the same name. As long as the times
// that a limiter is given do not go back, its answers are the same, too, because the
// arithmetic is the same: tokens are a float64 that may be negative, and a reservation's
// time is rounded down to the nanosecond. So are the texts of the errors of [Limiter.Wait],
// the zero values of [Limiter] and [Sometimes], and a limit of 0, which admits one burst
// and never refills.
//
// # What differs
//
// In all these cases x/time/rate admits more than its limit, and this package does not:
//
//   - A time before the newest one that was admitted counts as the newest. x/time/rate
//     refills the time in between once more. Callers read the clock before they wait for the
//     limiter's lock, so under contention a limiter sees times out of order, and
//     refills many times over (golang/go#71360, golang/go#65508). It also happens
//     if times given to AllowN or ReserveN come from a wall clock that is set back.
//   - [Reservation.Cancel] gives back a reservation's tokens at most once, and no more than
//     it took. In x/time/rate, a second Cancel gives them back again, a Cancel after
//     [Limiter.SetLimit] can give back more than was reserved, and a reservation that
//     was made while the limit was [Inf] gives back tokens that it never took.
//   - A limit that is not a number admits nothing after the first burst. In x/time/rate it limits
//     nothing, even after it was replaced.
//
// One consequence needs care. If a program gives AllowN a time in the future by mistake,
// nothing is refilled until that time has come. Allow, Reserve and Wait read the monotonic
// clock, which cannot be set.
package rate
