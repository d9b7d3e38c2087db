package headers

// Member is a member that ParseMembers has read.
type Member = member

// ParseMembers reads a List or a Dictionary.
var ParseMembers = parseMembers

// Numbers returns the integer parameters of m by name, and whether its value is a
// String, Token or Integer.
func (m *Member) Numbers() (text string, n int64, isText, isInt bool, params map[string]int64) {
	params = map[string]int64{}
	for _, p := range m.params {
		if delete(params, p.name); p.isInt {
			params[p.name] = p.n
		}
	}
	return m.text, m.n, m.isText, m.isInt, params
}
