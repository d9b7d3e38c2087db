package rule

// Present holds for every value but the empty one, which is also what a
// missing attribute has.
func Present() Test { return presence(true) }

// Absent holds for an attribute that is missing or empty.
func Absent() Test { return presence(false) }

type presence bool

func (p presence) Holds(value string) bool { return (value != "") == bool(p) }

func (p presence) String() string {
	if p {
		return "is present"
	}
	return "is missing"
}
