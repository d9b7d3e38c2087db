package fault

import (
	"cmp"
	"slices"
	"strings"
)

// List is a list of faults. A List is an error, even an empty one: return
// [List.Err] instead of a List.
type List []*Fault

// Addf appends a fault of the field at path. The problem is formatted as by
// [fmt.Sprintf].
func (l *List) Addf(path, format string, args ...any) {
	*l = append(*l, Newf(path, format, args...))
}

// Err returns l as an error, or nil if l is empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

// Error returns the text of every fault, each starting on a new line.
func (l List) Error() string {
	texts := make([]string, len(l))
	for i, f := range l {
		texts[i] = f.Error()
	}
	return strings.Join(texts, "\n")
}

// Unwrap returns the faults as errors, for [errors.As] and [errors.Is].
func (l List) Unwrap() []error {
	errs := make([]error, len(l))
	for i, f := range l {
		errs[i] = f
	}
	return errs
}

// Sort sorts l in place by file and position: first the faults in the file called
// name, then those in other files, by the names of the files.
func (l List) Sort(name string) {
	elsewhere := func(f *Fault) int {
		if f.Place.File == name {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(l, func(a, b *Fault) int {
		return cmp.Or(
			cmp.Compare(elsewhere(a), elsewhere(b)),
			cmp.Compare(a.Place.File, b.Place.File),
			cmp.Compare(a.Place.Line, b.Place.Line),
			cmp.Compare(a.Place.Column, b.Place.Column),
		)
	})
}

// Of returns the faults in err, in order: err itself if it is a [*Fault] or a
// [List], and those that err wraps or joins. It returns nil if there are none.
func Of(err error) List {
	switch e := err.(type) { //nolint:errorlint // the cases unwrap all there is
	case nil:
		return nil
	case *Fault:
		return List{e}
	case List:
		return slices.Clone(e)
	case interface{ Unwrap() error }:
		return Of(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all List
		for _, one := range e.Unwrap() {
			all = append(all, Of(one)...)
		}
		return all
	}
	return nil
}
