package rule

import (
	"errors"
	"fmt"
)

// In returns a test that holds for the entries of the list called name, and for the
// addresses inside them. An entry in the form of an address pattern (see [Address])
// stands for all addresses in it, in any spelling. Every other entry is compared byte for
// byte. A lookup takes about the same time in a list of any size. Conditions that test
// against one list should share the test. The error names each entry that is empty, and
// each invalid pattern, such as 10.0.0.0/33 or a range whose end is before its start.
func In(name string, entries []string) (Test, error) {
	l := in{&list{name: name}}
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

// in has a pointer, so that tests are cheap to copy and compare.
type in struct{ *list }

type list struct {
	name      string
	values    map[string]struct{}
	addresses addresses
}

func (l in) Holds(value string) bool {
	if _, ok := l.values[value]; ok {
		return true
	}
	return l.addresses.spell(value)
}

func (l in) String() string { return "is one of list " + l.name }
