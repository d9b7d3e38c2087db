package rule

// Present returns a test that holds for an attribute that is neither missing nor
// empty.
func Present() Test { return presence(true) }

// Absent returns a test that holds for an attribute that is missing or empty.
func Absent() Test { return presence(false) }

type presence bool

func (p presence) Holds(value string) bool { return (value != "") == bool(p) }

func (p presence) String() string {
	if p {
		return "is present"
	}
	return "is missing"
}
