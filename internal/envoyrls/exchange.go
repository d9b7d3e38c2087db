package envoyrls

import (
	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/access"
)

// An exchange is the memory of one call. Later calls use it again.
type exchange struct {
	engine Engine
	in     rls.RateLimitRequest
	out    rls.RateLimitResponse

	attributes []weir.Attribute
	takes      []weir.Item // of takeOf
	others     []weir.Item // checks and refunds, of otherOf
	takeOf     []int       // the descriptors of takes
	otherOf    []int       // the descriptors of others
	answers    []answer

	// Of the wire: the message, and what of the call is used again.
	body, scratch                []byte
	descriptors, list            []*common.RateLimitDescriptor
	entries                      []*common.RateLimitDescriptor_Entry
	descriptorsUsed, entriesUsed int

	bounds   *access.Bounds        // nil: none
	reserved int64                 // bytes of bounds
	admit    func(weir.Size) error // reserve, made once
}

func newExchange() *exchange {
	x := &exchange{}
	x.admit = x.reserve
	return x
}

// smallAnswer is the size, in bytes, up to which decisions are not counted as
// memory. times is how much memory a byte of a decision takes here, about.
const (
	smallAnswer = 64 << 10
	times       = 4
)

// reserve reserves the memory of decisions, if they are large.
func (x *exchange) reserve(s weir.Size) error {
	n := times * s.Bytes()
	if n <= smallAnswer {
		return nil
	}
	if err := x.bounds.Reserve(n); err != nil {
		return err
	}
	x.reserved += n
	return nil
}

// answer is the memory of one status.
type answer struct {
	status     rls.RateLimitResponse_DescriptorStatus
	limit      rls.RateLimitResponse_RateLimit
	reset      durationpb.Duration
	multiplier wrapperspb.UInt32Value
	decision   *weir.Decision
}

// mostKept is the number of descriptors above which the memory of an exchange is
// dropped after the call.
const mostKept = 64

// free returns x to the pool.
func (a *API) free(x *exchange) {
	if x.reserved > 0 {
		x.bounds.Release(x.reserved)
		x.reserved = 0
	}
	x.bounds, x.engine = nil, nil
	if len(x.answers) > mostKept || cap(x.attributes) > 16*mostKept || len(x.descriptors) > mostKept || len(x.entries) > 16*mostKept || cap(x.body) > smallMessage {
		return
	}
	clear(x.attributes)
	for i := range x.takes {
		x.takes[i].Request = weir.Request{}
	}
	for i := range x.others {
		x.others[i].Request = weir.Request{}
	}
	a.exchanges.Put(x)
}

// begin makes room for the answers to n descriptors.
func (x *exchange) begin(n int) {
	x.attributes = x.attributes[:0]
	x.takes, x.others, x.takeOf, x.otherOf = x.takes[:0], x.others[:0], x.takeOf[:0], x.otherOf[:0]
	if cap(x.answers) < n {
		x.answers = make([]answer, n, max(n, 4))
	}
	x.answers = x.answers[:n]
	statuses := x.out.Statuses[:0]
	x.out.Reset()
	x.out.Statuses = statuses
	for i := range x.answers {
		a := &x.answers[i]
		a.status.Reset()
		a.decision = nil
		x.out.Statuses = append(x.out.Statuses, &a.status)
	}
}

// item adds an item to items and returns it. It keeps the memory of decisions.
func item(items []weir.Item) ([]weir.Item, *weir.Item) {
	n := len(items)
	if n < cap(items) {
		items = items[:n+1]
	} else {
		items = append(items, weir.Item{})
	}
	it := &items[n]
	it.Request, it.Verb, it.Err = weir.Request{}, weir.Take, nil
	return items, it
}
