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

	// Memory is the maximum memory, in bytes, of large bodies, batches and their answers at the
	// same time, and again that of open streams. Callers have their part of each as of [Places].
	Memory int64

	// Loading, if it is not nil, reports whether the counters are still being
	// loaded. Then all requests are refused.
	Loading func() bool

	// Shed is called for each refusal by one of the limits, if it is not nil.
	Shed func(bound string)

	requests        atomic.Int64
	memory, streams *Places // of bytes; use them after prepare
	prepared        sync.Once
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
	tooMuchMemory   = &Overload{"large requests take as much memory as --max-request-memory allows this caller; try again, or send smaller ones"}
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

// prepare makes the places of l, once.
func (l *ResourceLimits) prepare() {
	l.prepared.Do(func() { l.memory, l.streams = NewPlaces(l.Memory), NewPlaces(l.Memory) })
}

// OpenStream reserves the memory of a stream for a caller of a share. [ResourceLimits.CloseStream] must give it back.
// It returns an [*Overload] if there is none.
func (l *ResourceLimits) OpenStream(share string) error {
	if l == nil || l.Memory == 0 {
		return nil
	}
	if l.prepare(); !l.streams.Take(share, StreamBytes) {
		l.shed(BoundMemory)
		return tooManyStreams
	}
	return nil
}

// CloseStream gives back what OpenStream has reserved for a caller of the share.
func (l *ResourceLimits) CloseStream(share string) {
	if l != nil && l.Memory > 0 {
		l.streams.Leave(share, StreamBytes)
	}
}

// awaitRetry is how often [Reservation.Await] looks for memory.
const awaitRetry = 10 * time.Millisecond

// Reservation is the memory that one call has reserved.
type Reservation struct {
	Resources *ResourceLimits // nil: none
	Caller    *Holder         // whose part it is
	bytes     int64
	share     string // of the caller when the first of the bytes were reserved
}

// Reserve reserves n bytes more, until they are freed. It returns an [*Overload] if there
// are not as many for the caller.
func (r *Reservation) Reserve(n int64) error {
	if r.try(n) {
		return nil
	}
	r.Resources.shed(BoundMemory)
	return tooMuchMemory
}

// Await reserves n bytes more as Reserve does, but waits for them until ctx ends.
func (r *Reservation) Await(ctx context.Context, n int64) error {
	for !r.try(n) {
		if ctx.Err() != nil {
			return r.Reserve(n) // which counts the refusal
		}
		time.Sleep(awaitRetry)
	}
	return nil
}

// try reserves n bytes more, and reports whether there were as many.
func (r *Reservation) try(n int64) bool {
	if l := r.Resources; l != nil && l.Memory > 0 {
		if r.bytes == 0 {
			r.share = r.Caller.Share()
		}
		if l.prepare(); !l.memory.Take(r.share, n) {
			return false
		}
		r.bytes += n
	}
	return true
}

// Shrink releases what is above n bytes.
func (r *Reservation) Shrink(n int64) {
	if r.bytes > n {
		r.Resources.memory.Leave(r.share, r.bytes-n)
		r.bytes = n
	}
}

// Free releases the reservation.
func (r *Reservation) Free() { r.Shrink(0) }

// Now returns the requests that are decided, and the bytes that are reserved.
func (l *ResourceLimits) Now() (requests, memory int64) {
	l.prepare()
	return l.requests.Load(), l.memory.Taken() + l.streams.Taken()
}

// ShedConnection counts a connection that is closed because of its traffic.
func (l *ResourceLimits) ShedConnection() { l.shed(BoundConnections) }

func (l *ResourceLimits) shed(bound string) {
	if l.Shed != nil {
		l.Shed(bound)
	}
}
