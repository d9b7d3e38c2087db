package envoyrls

import (
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
)

// An exchange is the memory of one call. Later calls use it again.
type exchange struct {
	engine Engine
	body   []byte // of the call, where its texts are
	in     request
	wrong  error // of the message; there is no call then

	attributes []weir.Attribute // of requests that ask about something else
	takes      []weir.Item      // of takeOf
	others     []weir.Item      // checks and refunds, of otherOf
	takeOf     []int            // the descriptors of takes
	otherOf    []int            // the descriptors of others

	code    rls.RateLimitResponse_Code
	answers []answer
	rest    rls.RateLimitResponse // what answers carry beside that

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
	return x.take(n)
}

// take reserves n bytes of the memory of the service until x is free.
func (x *exchange) take(n int64) error {
	if err := x.bounds.Reserve(n); err != nil {
		return err
	}
	x.reserved += n
	return nil
}

// answer is the memory of one status.
type answer struct {
	status   status
	decision *weir.Decision
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
	x.bounds, x.engine, x.wrong = nil, nil, nil
	if cap(x.answers) > mostKept || cap(x.in.descriptors) > mostKept || cap(x.attributes)+cap(x.in.attributes) > 16*mostKept || cap(x.body) > smallMessage {
		return
	}
	clear(x.attributes)
	clear(x.in.attributes)
	clear(x.in.descriptors)
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
	x.rest.ResponseHeadersToAdd, x.rest.RequestHeadersToAdd, x.rest.RawBody, x.rest.DynamicMetadata = nil, nil, nil, nil
	for i := range x.answers {
		x.answers[i] = answer{status: status{reset: -1}}
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
