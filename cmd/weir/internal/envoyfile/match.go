package envoyfile

// Found is the limit of a descriptor.
type Found struct {
	// Domain reports whether the domain is in the files.
	Domain bool

	// Limit is the limit, or nil. Descriptors without one are allowed.
	Limit *Limit

	// Patterns has, for the entries that share their counter with others, the
	// pattern that stands for their value, and otherwise "". Nil: there is none.
	Patterns []string
}

// Match finds the limit of a descriptor with n entries, of which entry returns the
// key and the value. At each entry the descriptor of the files with the same key
// and value comes first, then the first one with * that matches, then the one with
// the key alone. The limit is that of the last entry: a descriptor matches none
// with more or fewer entries.
func (c *Config) Match(domain string, n int, entry func(i int) (key, value string)) (f Found) {
	l := c.domains[domain]
	f.Domain = l != nil
	for i := 0; i < n && l != nil; i++ {
		key, value := entry(i)
		b := l.find(key, value)
		if b == nil {
			return f
		}
		if b.share {
			if f.Patterns == nil {
				f.Patterns = make([]string, n)
			}
			if f.Patterns[i] = b.value; b.value == "" {
				f.Patterns[i] = b.key
			}
		}
		if i == n-1 {
			f.Limit = b.limit
		}
		l = b.below
	}
	return f
}

// find returns the descriptor for an entry, or nil.
func (l *level) find(key, value string) *branch {
	if value != "" {
		if b := l.exact[[2]string{key, value}]; b != nil {
			return b
		}
	}
	for _, b := range l.wild {
		if b.matches(key, value) {
			return b
		}
	}
	return l.bare[key]
}

// matches reports whether a descriptor with * matches an entry.
func (d *descriptor) matches(key, value string) bool {
	if d.value != "" {
		return d.key == key && glob(d.value, value)
	}
	return glob(d.key, key) || glob(d.key, key+"_"+value)
}
