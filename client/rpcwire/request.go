package rpcwire

import (
	"unicode/utf8"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/client/sizes"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/receipt"
)

// verbs lists the verbs by their numbers in messages; 0 is a take, too.
var verbs = [...]weir.Verb{weir.Take, weir.Take, weir.Check, weir.Record, weir.Refund, weir.Settle, weir.Cancel, weir.Renew}

// numbers has the numbers of the verbs.
var numbers = [...]int64{weir.Take: 1, weir.Check: 2, weir.Record: 3, weir.Refund: 4, weir.Settle: 5, weir.Cancel: 6, weir.Renew: 7}

// Verbs returns all verbs that a request can have.
func Verbs() []weir.Verb { return verbs[1:] }

// AppendRequest appends r, a message of type weir.v1.Request with a verb. It is at the
// same time the request of the method for the verb, which ignores the field with it.
// Of attributes with the same name it appends the last one, which counts.
func AppendRequest(b []byte, verb weir.Verb, r *weir.Request) []byte {
	for i := range r.Attributes {
		a := &r.Attributes[i]
		if a.Name == "" || isAgain(r.Attributes[i+1:], a.Name) {
			continue
		}
		var start int
		b, start = open(b, 1)
		b = shut(appendText(appendText(b, 1, a.Name), 2, a.Value), start)
	}
	b = appendInt(b, 2, r.Hits)
	b = appendText(b, 3, r.Feedback)
	if !r.Receipt.IsZero() {
		var start int
		b, start = open(b, 4)
		b = shut(r.Receipt.Append(b), start)
	}
	b = appendBool(b, 5, r.Final)
	if verb != weir.Take {
		b = appendInt(b, 6, number(verb))
	}
	return b
}

// isAgain reports whether one of attributes has the name.
func isAgain(attributes []weir.Attribute, name string) bool {
	for i := range attributes {
		if attributes[i].Name == name {
			return true
		}
	}
	return false
}

// number returns the number of a verb. One that does not exist has a number that does
// not exist.
func number(verb weir.Verb) int64 {
	if int(verb) < len(numbers) {
		return numbers[verb]
	}
	return int64(len(verbs))
}

// AppendMap appends attributes that are in a map, as those of a request.
func AppendMap(b []byte, attributes map[string]string) []byte {
	for name, value := range attributes {
		var start int
		b, start = open(b, 1)
		b = shut(appendText(appendText(b, 1, name), 2, value), start)
	}
	return b
}

// Ask is a request that was read.
type Ask struct {
	// Verb is what to do: that of the request, or a check for a request of 0 hits.
	Verb weir.Verb

	// Sent is the verb before that, which says what the caller must be allowed to do.
	Sent weir.Verb

	Request weir.Request

	// Fault is what is wrong with the request. It must not be decided then.
	Fault *fault.Fault
}

// ReadRequest reads b, a weir.v1.Request or the request of a method. verb is the
// verb of the method; fixed reports whether the request cannot name another one. It
// appends the attributes to attrs. The strings of the request are views of b. The
// error is for bytes that are no message; what is wrong with a message is a.Fault.
func (a *Ask) ReadRequest(b []byte, verb weir.Verb, fixed bool, attrs []weir.Attribute) ([]weir.Attribute, error) {
	*a = Ask{Verb: verb, Sent: verb}
	from := len(attrs)
	r := &a.Request
	given := false
	var f field
	for len(b) > 0 {
		rest, err := next(b, &f)
		if err != nil {
			return attrs, err
		}
		b = rest
		switch {
		case f.number == 1 && f.isBytes():
			attrs, err = a.attribute(f.bytes, attrs, from)
		case f.number == 2 && f.isNumber():
			r.Hits, given = int64(f.n), true //nolint:gosec // two's complement
		case f.number == 3 && f.isBytes():
			if r.Feedback = view(f.bytes); len(f.bytes) > sizes.Text {
				a.wrong("feedback", "has %d bytes, more than %d", len(f.bytes), sizes.Text)
			}
			err = isText(f.bytes)
		case f.number == 4 && f.isBytes():
			a.receipt(f.bytes)
			err = isText(f.bytes)
		case f.number == 5 && f.isNumber():
			r.Final = f.n != 0
		case f.number == 6 && f.isNumber() && !fixed:
			if f.n < uint64(len(verbs)) {
				a.Verb, a.Sent = verbs[f.n], verbs[f.n]
			} else {
				a.wrong("verb", "%d: want one of weir.v1.Verb", f.n)
			}
		}
		if err != nil {
			return attrs, err
		}
	}
	r.Attributes = attrs[from:len(attrs):len(attrs)]
	a.complete(given)
	return attrs, nil
}

// complete turns a request of 0 hits into a check, and finds what does not go
// together. The engine finds the rest.
func (a *Ask) complete(given bool) {
	r := &a.Request
	switch {
	case given && r.Hits < 0:
		a.wrong("hits", "is negative; use refund to give hits back")
	case !given || r.Hits != 0:
	case a.Verb.Ends():
		a.wrong("hits", "is 0; use cancel to give back what was held")
	case r.Feedback != "":
		a.wrong("hits", "is 0, which counts nothing; leave it out with feedback")
	default:
		a.Verb = weir.Check
	}
}

// wrong notes the first fault of a request.
func (a *Ask) wrong(path, format string, args ...any) {
	if a.Fault == nil {
		a.Fault = fault.Newf(path, format, args...)
	}
}

func (a *Ask) receipt(b []byte) {
	a.Request.Receipt = weir.Receipt{}
	if len(b) == 0 {
		return
	}
	var err error
	if a.Request.Receipt, err = receipt.Parse(view(b)); err != nil {
		a.wrong("receipt", "is not a receipt: want the text that a take answered with")
	}
}

// attribute reads an entry of the map of attributes.
func (a *Ask) attribute(b []byte, attrs []weir.Attribute, from int) ([]weir.Attribute, error) {
	at, err := entry(b)
	switch {
	case err != nil || a.Fault != nil:
		return attrs, err
	case at.Name == "":
		a.wrong("attributes", "an attribute without a name")
	case len(at.Name) > sizes.Text:
		a.wrong("attributes", "an attribute's name has %d bytes, more than %d", len(at.Name), sizes.Text)
	case len(at.Value) > sizes.Text:
		a.wrong("attributes."+at.Name, "has %d bytes, more than %d", len(at.Value), sizes.Text)
	case len(attrs)-from == sizes.Attributes:
		a.wrong("attributes", "more than %d attributes", sizes.Attributes)
	}
	for i := from; i < len(attrs); i++ {
		if attrs[i].Name == at.Name {
			a.wrong("attributes."+at.Name, "is there twice")
		}
	}
	if a.Fault == nil {
		attrs = append(attrs, at)
	}
	return attrs, nil
}

// entry reads an entry of a map from text to text.
func entry(b []byte) (a weir.Attribute, err error) {
	var f field
	for len(b) > 0 {
		if b, err = next(b, &f); err != nil {
			return a, err
		}
		switch {
		case !f.isBytes() || f.number > 2:
			continue
		case isText(f.bytes) != nil:
			return a, errMessage
		case f.number == 1:
			a.Name = view(f.bytes)
		case f.number == 2:
			a.Value = view(f.bytes)
		}
	}
	return a, nil
}

// isText returns an error for bytes that are not UTF-8, which proto3 requires of text.
func isText(b []byte) error {
	if utf8.Valid(b) {
		return nil
	}
	return errMessage
}
