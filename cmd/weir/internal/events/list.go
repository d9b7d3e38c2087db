package events

import (
	"cmp"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
)

// shares has how much of some room each namespace takes.
type shares map[string]int

// below reports whether a namespace takes less than its part of all. If there is no room, such a namespace gets that of the
// one that takes most, so that none takes the room of others away.
func (s shares) below(namespace string, all int) bool { return s[namespace]*max(len(s), 1) < all }

// most returns a namespace that takes most.
func (s shares) most() (name string) {
	for other, n := range s {
		if n > s[name] {
			name = other
		}
	}
	return name
}

func (s shares) add(namespace string, n int) {
	if s[namespace] += n; s[namespace] == 0 {
		delete(s, namespace)
	}
}

// placed is an event in a list.
type placed interface {
	space() string // its namespace
	bytes() int    // the room that it takes
}

func (e *Event) space() string { return e.Namespace }
func (e *Event) bytes() int    { return len(e.text) }

// list has events in their order, so many of them and of their bytes at most. If there is no room, events of the namespace that
// has most make way.
type list[E placed] struct {
	most, mostBytes int

	events []E
	size   int // the sum of their bytes
	of     shares
}

func newList[E placed](most, mostBytes int) list[E] {
	return list[E]{most: most, mostBytes: mostBytes, of: shares{}}
}

func (l list[E]) clone() list[E] {
	l.events, l.of = slices.Clone(l.events), maps.Clone(l.of)
	return l
}

// over reports whether l has too many with n more events of so many bytes.
func (l *list[E]) over(n, bytes int) bool {
	return len(l.events)+n > l.most || l.size+bytes > l.mostBytes
}

// put adds e, in the place of the newest events of the namespace that has most if there is no room. It returns how many events
// were dropped, which e can be.
func (l *list[E]) put(e E) (dropped int64) {
	for l.over(1, e.bytes()) {
		dropped++
		if !l.of.below(e.space(), len(l.events)) {
			return dropped
		}
		l.remove(l.ofMost(slices.Backward(l.events)))
	}
	l.insert(len(l.events), e)
	return dropped
}

func (l *list[E]) insert(at int, e E) {
	l.events = slices.Insert(l.events, at, e)
	l.count(e, 1)
}

// count counts e as one that has come, or with -1 as one that has gone.
func (l *list[E]) count(e E, n int) {
	l.size += n * e.bytes()
	l.of.add(e.space(), n)
}

// ofMost returns the index of the first event, in an order of them, of the namespace that has most.
func (l *list[E]) ofMost(order iter.Seq2[int, E]) int {
	most := l.of.most()
	for at, e := range order {
		if e.space() == most {
			return at
		}
	}
	return -1
}

// remove removes an event.
func (l *list[E]) remove(at int) E {
	e := l.events[at]
	l.count(e, -1)
	if at > 0 {
		l.events = slices.Delete(l.events, at, at+1)
		return e
	}
	clear(l.events[:1])
	l.events = l.events[1:] // copies no others
	return e
}

// removeFunc removes the events for which gone reports true.
func (l *list[E]) removeFunc(gone func(E) bool) {
	l.events = slices.DeleteFunc(l.events, func(e E) bool {
		is := gone(e)
		if is {
			l.count(e, -1)
		}
		return is
	})
}

// inTurn sorts events so that namespaces take turns. The events of each stay in their order. The order of the namespaces
// is random, so that none is always left out when there are many.
func inTurn[E placed](events []E) {
	type placing struct {
		event E
		turn  float64
	}
	all, turns := make([]placing, len(events)), map[string]float64{}
	for i, e := range events {
		turn, ok := turns[e.space()]
		if !ok {
			turn = rand.Float64()
		}
		all[i], turns[e.space()] = placing{e, turn}, turn+1
	}
	slices.SortFunc(all, func(a, b placing) int { return cmp.Compare(a.turn, b.turn) })
	for i := range all {
		events[i] = all[i].event
	}
}
