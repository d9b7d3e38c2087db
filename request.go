package weir

// Attribute is one fact about an action: action=post, user=42, ip=10.0.0.1.
// Numbers and booleans are written as their shortest text.
type Attribute struct{ Name, Value string }

// Request is one action that somebody wants to take.
type Request struct {
	// Attributes describe the action. An empty value is the same as a missing
	// attribute. Of two with one name the last counts.
	Attributes []Attribute

	// Hits is what the action costs; 0 means one hit, [LookOnly] none.
	// Rules that sum take their cost from an attribute instead.
	Hits int64

	// Feedback, in a refund only, names what happened since, such as
	// "solved": rules give back the hits that they state for it, and those
	// that do not know it give back nothing. Hits does not count then.
	Feedback string
}

// LookOnly as a request's Hits makes every verb look without counting.
const LookOnly int64 = -1

// Attributes makes attributes of names and values in turn:
//
//	weir.Attributes("action", "post", "user", "42")
//
// A last name without a value is given an empty one.
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
