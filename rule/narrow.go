package rule

import "encoding/binary"

// Narrow is a vector of values for a set with few attributes, [Set.IsNarrow]. It can
// be on the stack, and one register passes it on.
type Narrow [8]string

// IsNarrow reports whether the vectors of s fit in a [Narrow], and no rule trims
// values.
func (s *Set) IsNarrow() bool { return s.narrow }

// narrows reports what IsNarrow returns.
func (s *Set) narrows() bool {
	for i := range s.rules {
		for _, w := range s.rules[i].when {
			if w.trim {
				return false
			}
		}
	}
	return s.Width() <= len(Narrow{})
}

// Only returns the index of the only rule that the index of s finds for values, if
// that matches. It returns -1 otherwise, also where several are found and one
// matches; [Set.Match] tells. s must be narrow. Only takes half as long as Match.
func (s *Set) Only(values *Narrow) int {
	x := &s.index
	only := -1
	switch len(x.others) {
	case 0:
	case 1:
		only = int(x.others[0])
	default:
		return -1
	}
	for i := range x.probes {
		p := &x.probes[i]
		v := values[p.at&7]
		if v == "" && !p.empty {
			continue
		}
		switch found := p.of(v); {
		case len(found) == 0:
		case len(found) > 1 || only >= 0:
			return -1
		default:
			only = int(found[0])
		}
	}
	if only < 0 {
		return -1
	}
	n := &x.needs[only]
	if len(n.tests) > 0 || n.rare != nil {
		if !n.met(values[:], false) {
			return -1
		}
		return only
	}
	for i := range n.parts {
		if values[n.parts[i].at&7] == "" {
			return -1
		}
	}
	return only
}

// Keys appends the key of a request under rule i to dst ([Set.AppendKey]), and returns
// it and the readable key. It returns nil where dst has no room. s must be narrow.
func (s *Set) Keys(dst []byte, i int, values *Narrow) (key []byte, readable string) {
	per := s.rules[i].per
	if len(per) == 1 { // without a loop
		readable = values[per[0].at&7]
		if len(readable) >= min(0x80, cap(dst)-len(dst)) {
			return nil, ""
		}
		return append(append(dst, byte(len(readable))), readable...), readable
	}
	room := cap(dst) - len(dst)
	for n := range per {
		room -= len(values[per[n].at&7]) + maxLen
	}
	if room < 0 {
		return nil, ""
	}
	return s.AppendKey(dst, i, values[:]), s.Key(i, values[:])
}

// maxLen is the most bytes that the length of a part takes.
const maxLen = binary.MaxVarintLen64
