package envoyrls

import (
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/grpcserver"
	"github.com/weirhq/weir/internal/run"
	"github.com/weirhq/weir/store"
)

// An exchange has the memory of one call. Later calls reuse it.
type exchange struct {
	engine  Engine
	call    grpcserver.Received // of message
	message rls.RateLimitRequest
	in      request // message, as it is decided

	attributes []weir.Attribute // of requests other than those of the descriptors
	takes      []weir.Item      // of takeOf
	others     []weir.Item      // checks and refunds, of otherOf
	takeOf     []int            // the descriptors of takes
	otherOf    []int            // the descriptors of others

	answers []answer // statuses of out
	out     rls.RateLimitResponse

	access.Reservation
	admit func(run.Size) error // reserve, made once
}

func newExchange() *exchange {
	x := &exchange{}
	x.call = grpcserver.Received{Message: &x.message, Admit: x.admitCall}
	x.admit = x.reserve
	return x
}

// smallAnswer is the size, in bytes, up to which decisions are not counted as
// memory. times is about how much memory a byte of a decision takes here.
const (
	smallAnswer = 64 << 10
	times       = 4
)

// reserve reserves the memory of decisions, if they are large.
func (x *exchange) reserve(s run.Size) error {
	n := times * s.Bytes()
	if n <= smallAnswer {
		return nil
	}
	return x.Reserve(n)
}

// smallMessage is the size, in bytes, of the largest message whose memory is not reserved.
const smallMessage = 64 << 10

// admitCall returns the fault of a message that exceeds a limit, and reserves the memory of a
// large one.
func (x *exchange) admitCall(b []byte) error {
	objects, err := excess(b)
	if err != nil || len(b) <= smallMessage {
		return err
	}
	return x.Reserve(textTimes*int64(len(b)) + objectBytes*int64(objects))
}

// maxKept is the number of descriptors above which the memory of an exchange is
// dropped after the call.
const maxKept = 64

// free returns x to the pool.
func (a *API) free(x *exchange) {
	x.Free()
	x.Resources, x.engine = nil, nil
	if cap(x.answers) > maxKept || cap(x.in.descriptors) > maxKept || cap(x.attributes)+cap(x.in.attributes) > 16*maxKept {
		return
	}
	proto.Reset(&x.message)
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

// begin allocates the answers to n descriptors.
func (x *exchange) begin(n int) {
	x.attributes = x.attributes[:0]
	x.takes, x.others, x.takeOf, x.otherOf = x.takes[:0], x.others[:0], x.takeOf[:0], x.otherOf[:0]
	if cap(x.answers) < n {
		x.answers = make([]answer, n, max(n, 4))
	}
	x.answers = x.answers[:n]
	x.out.ResponseHeadersToAdd, x.out.RequestHeadersToAdd, x.out.RawBody, x.out.DynamicMetadata = nil, nil, nil, nil
	x.out.Statuses = x.out.Statuses[:0]
	for i := range x.answers {
		a := &x.answers[i]
		*a = answer{}
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
	it.Request, it.Verb, it.Err = weir.Request{}, store.Take, nil
	return items, it
}
