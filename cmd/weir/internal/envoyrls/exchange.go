package envoyrls

import (
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/namespace"
	"github.com/weirhq/weir/internal/run"
)

// An exchange is one call.
type exchange struct {
	namespace *namespace.Namespace
	in        request

	takes   []weir.Item // of takeOf
	others  []weir.Item // checks and refunds, of otherOf
	takeOf  []int       // the descriptors of takes
	otherOf []int       // the descriptors of others
	refused bool        // a value is too long

	grpc, degraded, shadowed bool // for [Answered]

	answers []answer // statuses of out
	out     rls.RateLimitResponse

	access.Reservation
}

// smallAnswer is the size, in bytes, up to which decisions and descriptors are not counted as
// memory. times is about how much memory a byte of a decision takes here, and descriptorBytes how much a descriptor and
// its status take without that.
const (
	smallAnswer     = 64 << 10
	times           = 4
	descriptorBytes = 3 << 10
)

// reserveDescriptors reserves the memory of descriptors, if there are many.
func (x *exchange) reserveDescriptors() error {
	n := int64(len(x.in.descriptors)) * descriptorBytes
	if n <= smallAnswer {
		return nil
	}
	return x.Reserve(n)
}

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

// begin allocates the answers to n descriptors.
func (x *exchange) begin(n int) {
	x.answers, x.takes = make([]answer, n), make([]weir.Item, 0, n)
	for i := range x.answers {
		x.out.Statuses = append(x.out.Statuses, &x.answers[i].status)
	}
}
