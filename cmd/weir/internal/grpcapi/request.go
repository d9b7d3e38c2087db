package grpcapi

import (
	"github.com/weirhq/weir"
	weirv1 "github.com/weirhq/weir/api/weir/v1"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
	"github.com/weirhq/weir/cmd/weir/internal/sizes"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/once"
	"github.com/weirhq/weir/receipt"
	"github.com/weirhq/weir/store"
)

// verbs lists the verbs by their numbers in messages; 0 is a take, too.
var verbs = [...]store.Verb{store.Take, store.Take, store.Check, store.Record, store.Refund, store.Settle, store.Cancel, store.Renew}

// ask is a request of the engine.
type ask struct {
	// verb is what to do: that of the request, or a check for a request of 0 hits.
	verb store.Verb

	// sent is the verb of the request, which determines the scope that the caller needs.
	sent store.Verb

	request weir.Request

	// fault is the [*fault.Fault] of the request, or nil. A request with a fault must not be decided.
	fault error
}

// readAsk reads a request. A method for one verb receives it instead of its own message, whose fields
// have the same numbers.
func readAsk(in *weirv1.Request, verb store.Verb) ask {
	a := ask{verb: verb, sent: verb}
	r := &a.request
	var err error
	r.Hits, r.Feedback, r.Final = in.GetHits(), in.Feedback, in.Final
	if len(r.Feedback) > sizes.Text {
		a.wrong("feedback", "has %d bytes, more than %d", len(r.Feedback), sizes.Text)
	}
	if r.IdempotencyKey = in.IdempotencyKey; in.IdempotencyFor != nil {
		if r.IdempotencyFor = in.IdempotencyFor.AsDuration(); r.IdempotencyFor <= 0 || !in.IdempotencyFor.IsValid() {
			a.wrong("idempotency_for", "want more than 0 and at most %v", once.Most)
		}
	}
	if in.Receipt != "" {
		if r.Receipt, err = receipt.Parse(in.Receipt); err != nil {
			a.wrong("receipt", "is not a receipt of this version of weir: want the text that a take answered with")
		}
	}
	if r.Attributes, err = attributesOf(in.Attributes); a.fault == nil {
		a.fault = err
	}
	a.complete(in.Hits != nil)
	return a
}

// readAny calls readAsk for a request that names its verb.
func readAny(in *weirv1.Request) ask {
	if in.Verb < 0 || int(in.Verb) >= len(verbs) {
		return ask{fault: fault.Newf("verb", "%d: want one of weir.v1.Verb", in.Verb)}
	}
	return readAsk(in, verbs[in.Verb])
}

// attributesOf returns the attributes in a map. The error is a [*fault.Fault].
func attributesOf(from map[string]string) ([]weir.Attribute, error) {
	attrs := make([]weir.Attribute, 0, min(len(from), sizes.Attributes))
	for name, value := range from {
		if f := answer.AttributeFault(attrs, name, value); f != nil {
			return nil, f.In("attributes")
		}
		attrs = append(attrs, weir.Attribute{Name: name, Value: value})
	}
	return attrs, nil
}

// complete turns a request of 0 hits into a check, and reports fields that exclude each other. The
// engine reports other faults.
func (a *ask) complete(given bool) {
	r := &a.request
	switch {
	case given && r.Hits < 0:
		a.wrong("hits", "is negative; use refund to give hits back")
	case !given || r.Hits != 0:
	case a.verb.NeedsReceipt():
		a.wrong("hits", "is 0; use cancel to give back what was held")
	case r.Feedback != "":
		a.wrong("hits", "is 0, which counts nothing; leave it out with feedback")
	default:
		a.verb = store.Check
		r.IdempotencyKey, r.IdempotencyFor = "", 0 // it counts nothing, again or not
	}
}

// wrong records the first fault of a request.
func (a *ask) wrong(path, format string, args ...any) {
	if a.fault == nil {
		a.fault = fault.Newf(path, format, args...)
	}
}
