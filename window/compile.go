package window

import "github.com/weirhq/weir/fault"

// Compiled is a [Limit] that is ready for use. Make one with [Compile] or
// [MustCompile]. It is immutable and safe for concurrent use; its zero value is
// not usable.
//
// Check, Take, Record and Refund count in the [State] of a key, and Read reads it.
// The other methods are for stores, which keep the states.
type Compiled struct {
	origin     *Compiled // see Origin
	limit      Limit
	capacity   int64
	onCalendar bool

	// recounts reports whether a take can raise Used by less than its hits, so
	// that Take has to look again.
	recounts bool

	algorithm algorithm

	// log is the algorithm where states can be plain logs, see log.go; or nil.
	log *sliding

	// Of a limit with a condition, otherwise nil.
	base, inner *Compiled

	// around reports whether the limit holds or bans, see around.go. holding is
	// the algorithm around algorithm that counts holds, or nil when the kind
	// cannot hold. anyWord reports whether states begin with any word.
	around  bool
	holding holder
	anyWord bool

	holds *holds // nil: of CompileFinal
}

// Compile makes l ready for use. It returns the error of [Limit.Validate] when
// l is invalid.
func Compile(l Limit) (*Compiled, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return compile(l, &withHolds), nil
}

// CompileFinal is like [Compile] for a limit whose takes do not hold, and whose states no
// other limit has made. Programs that compile no other limits do not link what counts
// holds. It is for weir's own limiters.
func CompileFinal(l Limit) (*Compiled, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	if l.Hold > 0 || l.Window.Kind == KindHeld {
		return nil, fault.Newf("hold", "a limiter gives no receipts that would end holds: use NewEngine")
	}
	return compile(l, nil), nil
}

// MustCompile is like [Compile] but panics when l is invalid. It is for limits
// that are written in a program.
func MustCompile(l Limit) *Compiled {
	c, err := Compile(l)
	if err != nil {
		panic(err)
	}
	return c
}

// compile makes l ready for use. It is valid, or made of one that is.
func compile(l Limit, holds *holds) *Compiled {
	c := &Compiled{}
	c.fill(l, holds)
	c.origin = c
	return c
}

// fill sets c to l.
func (c *Compiled) fill(l Limit, holds *holds) {
	*c = Compiled{limit: l, holds: holds, capacity: l.capacity(), onCalendar: kinds[l.Window.Kind].onWall, recounts: l.Measure == Distinct}
	for i := range wrappers {
		if w := &wrappers[i]; w.wraps(&l) {
			w.compile(c, func(l Limit) *Compiled { return compile(l, holds) })
			return
		}
	}
	kind := &kinds[l.Window.Kind]
	if l.Measure == Distinct {
		c.algorithm = kind.members(&l)
		c.anyWord = l.Window.Kind == KindSliding
		return
	}
	if kind.holds {
		c.algorithm = holds.held(&l)
	} else {
		c.algorithm = kind.compile(&l)
	}
	if holds != nil {
		c.holding = holds.around(&l, c.algorithm)
	}
	c.around = l.Hold > 0
	c.recounts = c.recounts || kind.holds
	if !c.around {
		c.log = plainLog(c.algorithm)
	}
}

// Origin returns what [Compile] returned, of which l may be a copy: it tells whether
// two limits were compiled from one declaration together, and is not on the stack.
func (l *Compiled) Origin() *Compiled { return l.origin }

// Limit returns the declaration that l was compiled from.
func (l *Compiled) Limit() Limit { return l.limit }

// Distinct reports whether l counts distinct members, so that its hits need a
// [Hits.Member].
func (l *Compiled) Distinct() bool { return l.limit.Measure == Distinct }

// OnCalendar reports whether l depends on the wall clock, because its window or
// the window of its condition is a calendar window or an aligned one.
func (l *Compiled) OnCalendar() bool { return l.onCalendar }

// Capacity returns the most hits that fit at once: the quota, a bucket's burst,
// or [Unlimited].
func (l *Compiled) Capacity() int64 { return l.capacity }

// Parts returns the limit that counts hits towards the condition of l ([Limit.After]),
// and l without its condition. If l has no condition they are nil and l itself.
func (l *Compiled) Parts() (base, inner *Compiled) {
	if l.base == nil {
		return nil, l
	}
	return l.base, l.inner
}
