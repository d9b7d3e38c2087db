package weir

import (
	"time"

	"github.com/weirhq/weir/internal/ruleset"
	"github.com/weirhq/weir/receipt"
	"github.com/weirhq/weir/rule"
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
	// or one above 2^53 - 1 is an error. Rules that sum an attribute take their
	// cost from it instead, and rules on distinct members count one member. To
	// decide without counting, use [Engine.Check].
	Hits int64

	// Feedback names an event, such as "solved", in a refund. Each rule then
	// gives back the hits that it states for the event ([rule.Rule.Feedback]),
	// or nothing if it states none, and Hits is ignored. A name that no rule has is
	// an error, and so is Feedback with another verb.
	Feedback string

	// Receipt names the take whose holds a settle, a cancel or a renewal is about.
	// The methods of those names set it. With another verb it is an error.
	Receipt Receipt

	// Rules, if it is not nil, decides the request instead of the engine's rules.
	// It is for limits that come with a request. Rules with the same identity
	// ([rule.Rule]) in both have the same counters. Pass the same set again for
	// the same limits: the engine prepares each set once, and remembers a few
	// thousand.
	Rules *rule.Set

	// IdempotencyKey, if it is not empty, makes a take, a record, a refund or a settle count once: the same request
	// with the same key gets the answer of the first one, and counts nothing. It has 1 to 128 bytes, such
	// as a random UUID. The same key with another request is [store.ErrConflict], and so is one with Rules none of
	// which was in the answer; a rule that was not is left out. The store keeps the answer,
	// for IdempotencyFor: 10 minutes if that is 0, and at most 24 hours. A key without a rule that counts does
	// nothing.
	IdempotencyKey string
	IdempotencyFor time.Duration

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

// valuesOf returns the values of attributes in the order of set's attributes. It
// reuses the memory of values, all of whose texts are empty.
func valuesOf(values []string, set *ruleset.Compiled, attributes []Attribute) []string {
	if n := set.Width(); cap(values) < n {
		values = make([]string, n)
	} else {
		values = values[:n]
	}
	names, next := set.Names(), 0
	for i := range attributes {
		a := &attributes[i]
		if next >= len(names) || names[next] != a.Name { // most programs give attributes in the order of their names
			at, ok := set.Attribute(a.Name)
			if !ok {
				continue
			}
			next = at
		}
		values[next] = a.Value
		next++
	}
	set.Complete(values)
	return values
}
