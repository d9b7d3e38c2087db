package weir

import (
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/plan"
	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/receipt"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/window"
)

// Attribute is one fact about an action, such as action=post, user=42 or
// ip=10.0.0.1. Values are text: write a number or a boolean in its shortest
// form, 5 and not 5.0.
type Attribute struct{ Name, Value string }

// Request describes one action to decide or to count. Its zero value is an action
// of one hit without attributes.
type Request struct {
	// Attributes describes the action. An empty value is the same as a missing
	// attribute. Of two attributes with the same name the last one counts.
	// Attributes that no rule uses are ignored.
	Attributes []Attribute

	// Hits is the cost of the action in hits. 0 means 1, and a negative number
	// is an error. Rules that sum an attribute take their cost from it instead,
	// and rules on distinct members count one member. To decide without
	// counting, use [Engine.Check].
	Hits int64

	// Feedback names an event, such as "solved", in a refund. Each rule then
	// gives back the hits that it states for the event ([rule.Rule.Feedback]),
	// or nothing if it states none, and Hits is ignored. Feedback with another
	// verb is an error.
	Feedback string

	// Receipt names the take whose holds a settle, a cancel or a renewal is about.
	// The methods of those names set it. With another verb it is an error.
	Receipt Receipt

	// Rules, if it is not nil, decides the request in place of the engine's rules.
	// It is for limits that come with a request. Rules with the same identity
	// ([rule.Rule]) in both have the same counters. Pass the same set again for
	// the same limits: the engine prepares each set once, and remembers a few
	// thousand.
	Rules *rule.Set

	// Final makes a take hold nothing: it gets no receipt. Its hits are final at
	// once, and it does not match rules with a held window, which count only what
	// a receipt releases. It is for callers that cannot keep a receipt.
	Final bool
}

// Receipt names one take, so that its holds can be ended. See [receipt.Parse] for
// its text.
type Receipt = receipt.Receipt

// Attributes returns attributes from names and values that alternate:
//
//	weir.Attributes("action", "post", "user", "42")
//
// A last name without a value gets the empty value.
func Attributes(namesAndValues ...string) []Attribute {
	attrs := make([]Attribute, 0, (len(namesAndValues)+1)/2)
	for i := 0; i < len(namesAndValues); i += 2 {
		a := Attribute{Name: namesAndValues[i]}
		if i+1 < len(namesAndValues) {
			a.Value = namesAndValues[i+1]
		}
		attrs = append(attrs, a)
	}
	return attrs
}

// read puts r into to, with its attributes where set looks for them: values, if that is
// known already, and not nil.
func (r *Request) read(verb store.Verb, set *ruleset.Compiled, values []string, to *plan.Request) error {
	to.Verb, to.Hits, to.Feedback = verb, min(r.Hits, window.MaxHits+1), r.Feedback
	to.Receipt, to.Exact = r.Receipt.Take, r.Hits > 0
	switch {
	case verb > store.Renew:
		return fault.Newf("verb", "%d: want Check, Take, Record, Refund, Settle, Cancel or Renew", verb)
	case verb.Ends() && r.Receipt.IsZero():
		return fault.Newf("receipt", "is missing: a %s needs the receipt of a take", verb)
	case !verb.Ends() && !r.Receipt.IsZero():
		return fault.Newf("receipt", "with a %s: want a settle, a cancel or a renew", verb)
	case r.Hits == 0:
		to.Hits = 1
	case r.Hits < 0:
		return fault.Newf("hits", "%d: want at least 1, or 0 for 1", r.Hits)
	}
	if r.Feedback != "" && verb != store.Refund {
		return fault.Newf("feedback", "%q in a %s: want a refund", r.Feedback, verb)
	}
	if values == nil {
		to.Values = vector(to.Values, set, r.Attributes)
	} else {
		to.Values = append(to.Values[:0], values...)
	}
	return nil
}

// vector returns the values of attributes in the order of set's attributes. It
// reuses the memory of values, all of whose texts are empty.
func vector(values []string, set *ruleset.Compiled, attributes []Attribute) []string {
	if n := set.Width(); cap(values) < n {
		values = make([]string, n)
	} else {
		values = values[:n]
	}
	fill(values, set, attributes)
	return values
}

// shortValues is the most values that a short form has, and the most names that are
// compared one by one.
const shortValues = 8

// fill sets values, which are empty, to those of attributes in the order of set's. It
// looks for each name behind the one before it first, because most programs give
// attributes in one order.
func fill(values []string, set *ruleset.Compiled, attributes []Attribute) {
	names, next := set.Names(), 0
	if len(names) > shortValues {
		for i := range attributes {
			if at, ok := set.Attribute(attributes[i].Name); ok {
				values[at] = attributes[i].Value
			}
		}
		names = nil
	}
	for k := range attributes {
		a := &attributes[k]
		for range names {
			at := next
			if next++; next == len(names) {
				next = 0
			}
			if names[at] == a.Name {
				values[at] = a.Value
				break
			}
		}
	}
	set.Complete(values)
}
