package envoyfile

import "strings"

// Found is the limit of a descriptor.
type Found struct {
	// Domain reports whether the domain is in the files.
	Domain bool

	// Limit is the limit, or nil. Descriptors without one are allowed.
	Limit *Limit

	// Patterns has the pattern that replaces the value of each entry that shares its
	// counter with others, and otherwise "". Nil: there is none.
	Patterns []string
}

// Match finds the limit of a descriptor with n entries, of which entry returns the
// key and the value. At each entry the descriptor of the files with the same key
// and value comes first, then the first one with * that matches, then the one with
// only the key. The limit is that of the last entry, so a descriptor does not match one with
// more or fewer entries.
func (c *Config) Match(domain string, n int, entry func(i int) (key, value string)) (f Found) {
	l := c.domains[domain]
	f.Domain = l != nil
	for i := 0; i < n && l != nil; i++ {
		key, value := entry(i)
		d := l.find(key, value)
		if d == nil {
			return f
		}
		if d.share {
			if f.Patterns == nil {
				f.Patterns = make([]string, n)
			}
			if f.Patterns[i] = d.value; d.value == "" {
				f.Patterns[i] = d.key
			}
		}
		if i == n-1 && d.limited {
			f.Limit = &d.Limit
		}
		l = d.below
	}
	return f
}

// find returns the descriptor for an entry, or nil.
func (l *level) find(key, value string) *descriptor {
	if d := l.exact[[2]string{key, value}]; d != nil && value != "" {
		return d
	}
	for _, d := range l.wild {
		if d.matches(key, value) {
			return d
		}
	}
	return l.exact[[2]string{key, ""}]
}

// matches reports whether a descriptor with * matches an entry.
func (d *descriptor) matches(key, value string) bool {
	if d.value != "" {
		return d.key == key && glob(d.value, value)
	}
	return glob(d.key, key) || glob(d.key, key+"_"+value)
}

// glob reports whether text matches pattern, in which * stands for any
// characters. It takes time in proportion to the product of the lengths at most.
func glob(pattern, text string) bool {
	first, rest, any := strings.Cut(pattern, "*")
	if !any {
		return pattern == text
	}
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	for {
		part, more, any := strings.Cut(rest, "*")
		if !any {
			return strings.HasSuffix(text, part)
		}
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text, rest = text[at+len(part):], more
	}
}
