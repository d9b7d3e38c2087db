package rule

import (
	"errors"
	"fmt"
)

// List is a named collection of values and addresses that rules test against.
// It is immutable and safe for concurrent use. A lookup takes about the same
// time in a list of any size.
type List struct {
	name      string
	values    map[string]struct{}
	addresses addresses
}

// NewList returns a list of entries. An entry in the form of an address pattern
// (see [Address]) stands for all addresses in it, in any spelling. Every other
// entry is compared byte for byte. The error names each entry that is empty, and
// each invalid pattern, such as 10.0.0.0/33 or a range whose end is before its
// start.
func NewList(name string, entries []string) (*List, error) {
	l := &List{name: name}
	var values []string // so that the map gets its size at once
	var faults []error
	for i, e := range entries {
		if e == "" {
			faults = append(faults, fmt.Errorf("list %q: entry %d is empty", name, i+1))
			continue
		}
		switch like, err := l.addresses.add(e); {
		case !like || errors.Is(err, errNoAddress):
			values = append(values, e)
		case err != nil:
			faults = append(faults, fmt.Errorf("list %q: entry %d: %w", name, i+1, err))
		}
	}
	if faults != nil {
		return nil, errors.Join(faults...)
	}
	l.addresses.compact()
	l.values = make(map[string]struct{}, len(values))
	for _, v := range values {
		l.values[v] = struct{}{}
	}
	return l, nil
}

// Name returns the name of the list.
func (l *List) Name() string { return l.name }

// Contains reports whether value is an entry of the list, or an address inside
// one.
func (l *List) Contains(value string) bool {
	if _, ok := l.values[value]; ok {
		return true
	}
	return l.addresses.spell(value)
}

// In returns a test that holds for the values that l contains.
func In(l *List) Test { return in{l} }

type in struct{ list *List }

func (i in) Holds(value string) bool { return i.list.Contains(value) }
func (i in) String() string          { return "is one of list " + i.list.name }
