package envoyrlqs

import (
	"context"
	"errors"
	"io"
	"time"

	rlqs "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
)

// Service and File are the name of the protocol's service and of the file that
// defines it.
const (
	Service = "envoy.service.rate_limit_quota.v3.RateLimitQuotaService"
	File    = "envoy/service/rate_limit_quota/v3/rlqs.proto"
)

// API serves StreamRateLimitQuotas. Make one with [New]. It is safe for concurrent use.
type API struct {
	namespaces *namespace.Set
	pool       *pool
}

// New returns the API of the namespaces in namespaces. memory limits the buckets of all streams, in bytes; 0: no limit.
func New(namespaces *namespace.Set, memory int64) *API {
	return &API{namespaces: namespaces, pool: newPool(memory)}
}

// need has the scopes that a stream needs: a report also records hits past the quota, which belong to no assignment.
const need = access.Decide | access.Record

// Methods returns the methods of the service.
func (a *API) Methods() []grpcserver.Method {
	return []grpcserver.Method{{Name: "StreamRateLimitQuotas", Need: need, Serve: a.serve, ClientStreams: true, ServerStreams: true}}
}

// received is a message, or the error that ends the stream.
type received struct {
	message *rlqs.RateLimitQuotaUsageReports
	memory  access.Reservation
	at      time.Time
	err     error
}

// waiting is the maximum number of messages that wait. They are received at once, because it matters when they arrive
// ([bucket.ask]), and a stream with more ends. Those whose memory is at most smallWaiting fit into the reservation of the stream.
const (
	waiting      = 8
	smallWaiting = access.StreamBytes / waiting
)

// patience is how long a larger message waits for memory, which Envoys that report at the same time can need more of than
// there is. The stream receives nothing meanwhile.
const patience = 5 * time.Second

var errTooFast = &access.Overload{Detail: "reports arrive faster than they are answered; try again"}

// serve serves one stream. Reports are answered in their order.
func (a *API) serve(c *grpcserver.Call) error {
	s := a.pool.open(c.Caller.Share())
	defer s.close()
	in := make(chan received, waiting)
	go func() { // it ends soon after the call has ended, at the latest
		defer close(in)
		for {
			r := receive(c)
			if r.err == nil && len(in) == waiting-1 { // the last place is for the error
				r.memory.Free()
				r = received{err: errTooFast}
			}
			if in <- r; r.err != nil {
				return
			}
		}
	}()
	defer func() {
		go func() {
			for r := range in {
				r.memory.Free()
			}
		}()
	}()
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		var more <-chan time.Time
		if !s.due.IsZero() {
			due.Reset(time.Until(s.due))
			more = due.C
		}
		select {
		case r := <-in:
			err := r.err
			if err == nil {
				err = a.answer(c, s, &r)
			}
			r.memory.Free()
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			}
		case now := <-more:
			err := a.answer(c, s, &received{at: now})
			if _, busy := errors.AsType[*access.Overload](err); busy {
				s.due = time.Time{} // the next report asks again
			} else if err != nil {
				return err
			}
		case <-s.crowded:
			out := new(rlqs.RateLimitQuotaResponse)
			s.shrink(out)
			if err := send(c, out); err != nil {
				return err
			}
		case <-c.Leaving():
			return grpcserver.ErrStopping
		}
	}
}

// receive receives a message, and reserves the memory that it takes until it is answered.
func receive(c *grpcserver.Call) (r received) {
	r.message, r.memory = new(rlqs.RateLimitQuotaUsageReports), c.Reservation()
	in := grpcserver.Received{Message: r.message, Texts: texts, Admit: func(b []byte) error {
		r.at = time.Now()
		n, err := memoryOf(b)
		if err != nil || n <= smallWaiting {
			return err
		}
		ctx, end := context.WithTimeout(c.Context(), patience)
		defer end()
		return r.memory.Await(ctx, n)
	}}
	if r.err = c.RecvMsg(&in); r.err == nil {
		r.err = in.Err
	}
	return r
}

// answer answers one message, or sends what has become free if there is none.
func (a *API) answer(c *grpcserver.Call, s *session, r *received) error {
	if err := c.Again(need); err != nil {
		return err
	}
	ns, err := c.Namespace(a.namespaces)
	if err != nil {
		return err
	}
	if r.message != nil {
		if err := s.check(r.message); err != nil {
			return err
		}
	}
	if err := c.Begin(); err != nil {
		return err
	}
	var out *rlqs.RateLimitQuotaResponse
	if r.message != nil {
		out, err = s.report(c.Context(), ns.Engine(), r.message, r.at)
	} else {
		out, err = s.more(c.Context(), ns.Engine(), r.at)
	}
	c.End()
	if err != nil {
		return err
	}
	return send(c, out)
}

// send sends out, if there is anything in it.
func send(c *grpcserver.Call, out *rlqs.RateLimitQuotaResponse) error {
	if len(out.BucketAction) == 0 {
		return nil
	}
	return c.SendMsg(out)
}
