package access

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// ResourceLimits limits the concurrent work of a service. What goes beyond them is
// refused at once, because a queue would only grow; [Reservation.Await] is for those
// that cannot send more meanwhile. The zero value has no limits; nor has a
// nil *ResourceLimits. It is safe for concurrent use.
type ResourceLimits struct {
	// Requests is the maximum number of requests that are decided at the same time. Those
	// whose body is still on its way do not count.
	Requests int64

	// Memory is the maximum memory, in bytes, of large bodies, batches and their answers
	// at the same time.
	Memory int64

	// Loading, if it is not nil, reports whether the counters are still being
	// loaded. Then all requests are refused.
	Loading func() bool

	// Shed is called for each refusal by one of the limits, if it is not nil.
	Shed func(bound string)

	requests, memory atomic.Int64

	streams     *Places // each has [StreamBytes] of Memory
	makeStreams sync.Once
}

// StreamBytes is the memory, in bytes, that a stream of messages has reserved while it is open.
const StreamBytes = 64 << 10

// Names of the limits, for metrics.
const (
	BoundRequests    = "requests"
	BoundMemory      = "memory"
	BoundConnections = "connections"
)

// Overload is the error of a request that is refused because the service has too
// much to do. Nothing was counted, and the request may be sent again.
type Overload struct {
	// Detail states which limit was reached.
	Detail string
}

func (o *Overload) Error() string { return o.Detail }

// OverloadRetry is how long a caller should wait after an [Overload].
const OverloadRetry = time.Second

var (
	stillLoading    = &Overload{"the counters are still being loaded from the data directory; try again"}
	tooManyRequests = &Overload{"the service decides as many requests as --max-requests allows; try again"}
	tooManyStreams  = &Overload{"open streams take as much memory as --max-request-memory allows this caller; end one"}
	tooMuchMemory   = &Overload{"large requests take as much memory as --max-request-memory allows; try again, or send smaller ones"}
)

// Begin begins a request, which [ResourceLimits.End] must end. It returns an [*Overload]
// if there are too many, or while the counters are loaded.
func (l *ResourceLimits) Begin() error {
	if err := l.Loaded(); err != nil || l == nil || l.Requests == 0 {
		return err
	}
	if l.requests.Add(1) > l.Requests {
		l.requests.Add(-1)
		l.shed(BoundRequests)
		return tooManyRequests
	}
	return nil
}

// Loaded returns an [*Overload] if the counters are still being loaded.
func (l *ResourceLimits) Loaded() error {
	if l != nil && l.Loading != nil && l.Loading() {
		return stillLoading
	}
	return nil
}

// End ends a request that began.
func (l *ResourceLimits) End() {
	if l != nil && l.Requests > 0 {
		l.requests.Add(-1)
	}
}

// Reserve reserves n bytes, which [ResourceLimits.Release] must give back. It returns an
// [*Overload] if there are not as many.
func (l *ResourceLimits) Reserve(n int64) error {
	if l.tryReserve(n) {
		return nil
	}
	l.shed(BoundMemory)
	return tooMuchMemory
}

// tryReserve reserves n bytes, and reports whether there were as many.
func (l *ResourceLimits) tryReserve(n int64) bool {
	if l == nil || l.Memory == 0 {
		return true
	}
	for {
		reserved := l.memory.Load()
		if reserved+n > l.Memory {
			return false
		}
		if l.memory.CompareAndSwap(reserved, reserved+n) {
			return true
		}
	}
}

// Release gives back n bytes.
func (l *ResourceLimits) Release(n int64) {
	if l != nil && l.Memory > 0 {
		l.memory.Add(-n)
	}
}

// OpenStream reserves the memory of a stream for a caller of a share, up to what [Places] leaves to that.
// [ResourceLimits.CloseStream] must give it back. It returns an [*Overload] if there is none.
func (l *ResourceLimits) OpenStream(share string) error {
	if l == nil || l.Memory == 0 {
		return nil
	}
	l.makeStreams.Do(func() { l.streams = NewPlaces(int(l.Memory / StreamBytes)) })
	if !l.streams.Take(share) {
		l.shed(BoundMemory)
		return tooManyStreams
	}
	if err := l.Reserve(StreamBytes); err != nil {
		l.streams.Leave(share)
		return err
	}
	return nil
}

// CloseStream gives back what OpenStream has reserved for a caller of the share.
func (l *ResourceLimits) CloseStream(share string) {
	if l != nil && l.Memory > 0 {
		l.Release(StreamBytes)
		l.streams.Leave(share)
	}
}

// awaitRetry is how often [Reservation.Await] looks for memory.
const awaitRetry = 10 * time.Millisecond

// Reservation is the memory that one call has reserved.
type Reservation struct {
	Resources *ResourceLimits // nil: none
	bytes     int64
}

// Reserve reserves n bytes more, until they are freed. It returns an [*Overload] if there
// are not as many.
func (r *Reservation) Reserve(n int64) error {
	if err := r.Resources.Reserve(n); err != nil {
		return err
	}
	r.bytes += n
	return nil
}

// Await reserves n bytes more as Reserve does, but waits for them until ctx ends.
func (r *Reservation) Await(ctx context.Context, n int64) error {
	for !r.Resources.tryReserve(n) {
		if ctx.Err() != nil {
			return r.Reserve(n) // which counts the refusal
		}
		time.Sleep(awaitRetry)
	}
	r.bytes += n
	return nil
}

// Shrink releases what is above n bytes.
func (r *Reservation) Shrink(n int64) {
	if r.bytes > n {
		r.Resources.Release(r.bytes - n)
		r.bytes = n
	}
}

// Free releases the reservation.
func (r *Reservation) Free() { r.Shrink(0) }

// Now returns the requests that are decided, and the bytes that are reserved.
func (l *ResourceLimits) Now() (requests, memory int64) { return l.requests.Load(), l.memory.Load() }

// ShedConnection counts a connection that is closed because of its traffic.
func (l *ResourceLimits) ShedConnection() { l.shed(BoundConnections) }

func (l *ResourceLimits) shed(bound string) {
	if l.Shed != nil {
		l.Shed(bound)
	}
}
