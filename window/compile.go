package window

import "github.com/weirhq/weir/fault"

// Compiled is a [Limit] that is ready for use. Make one with [Compile] or
// [MustCompile]. It is immutable and safe for concurrent use, and can be copied; its
// zero value is not usable.
//
// Check, Take, Record and Refund count in the [State] of a key, and Read reads it.
// The other methods are for stores, which keep the states.
type Compiled struct {
	// Limit is the declaration that the limit was compiled from. Nobody may change it.
	// Copies of a Compiled share it, so that its address identifies them.
	*Limit

	// recounts reports whether a take can raise Used by less than its hits, so
	// that Take has to look again.
	recounts bool

	algorithm algorithm
	maxWords  int // see MaxWords

	// log is the algorithm where states can be logs of dates, see log.go; or nil.
	log *sliding

	// Of a limit with a condition, otherwise nil.
	base, inner *Compiled

	// wrapped reports whether the limit holds or bans, see wrapper.go. holding is
	// algorithm with holds, or nil when the kind
	// cannot hold. anyWord reports whether states begin with any word.
	wrapped bool
	holding holder
	anyWord bool

	// keeps reports whether closed periods are kept, so that a state can be needed when its
	// key is as good as unused; see closed.go.
	keeps bool

	// undated reports whether states have to record from when on no hits were dropped, see
	// ban.go.
	undated bool

	holds *holds // nil: of CompileFinal
}

// Compile makes l ready for use. Its error is a [fault.List] of everything that is wrong
// with l. The paths of the faults are "quota", "measure", "window.length",
// "after.window.n" and so on. It refuses limits that need products above 2^53, because
// the script of a shared store could not compute those exactly.
func Compile(l Limit) (*Compiled, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	return compile(l, &withHolds), nil
}

// CompileFinal is like [Compile] for a limit whose takes do not hold, and whose states no
// other limit has made. Programs that compile no other limits do not link what counts
// holds, and closed periods: it ignores Export. It is for weir's own limiters.
func CompileFinal(l Limit) (*Compiled, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	if l.HoldLength() > 0 {
		return nil, fault.Newf("hold", "a limiter gives no receipts that would end holds: use NewEngine")
	}
	l.Export = false
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
	c := &Compiled{Limit: &l, holds: holds, recounts: l.Measure == Distinct}
	for i := range wrappers {
		if w := &wrappers[i]; w.wraps(&l) {
			w.compile(c, func(l Limit) *Compiled { return compile(l, holds) })
			c.maxWords = c.most()
			return c
		}
	}
	c.compileKind(holds)
	c.maxWords = c.most()
	return c
}

// compileKind makes l, whose limit is set and has no wrapper, ready for use.
func (l *Compiled) compileKind(holds *holds) {
	limit := *l.Limit
	kind := &kinds[limit.Window.Kind]
	if limit.Measure == Distinct {
		l.algorithm = kind.members(&limit)
		l.anyWord, l.undated = limit.Window.Kind == KindSliding, true
		return
	}
	switch l.keeps = limit.longestKept() > 0; {
	case kind.holds:
		l.algorithm = holds.held(&limit)
	case l.keeps:
		l.algorithm = holds.kept(&limit)
	default:
		l.algorithm = kind.compile(&limit)
	}
	if holds != nil {
		l.holding = holds.wrap(&limit, l.algorithm)
	}
	l.wrapped = limit.Hold > 0
	l.recounts = l.recounts || kind.holds
	l.undated = (kind.undated || kind.fields&hasPrecision != 0 && groupOf(&limit) > 1) && !l.wrapped
	if !l.wrapped {
		l.log = dateLog(l.algorithm)
	}
}

// most returns what MaxWords returns.
func (l *Compiled) most() int {
	n := l.algorithm.maxWords()
	if l.Hold > 0 {
		n = l.holding.maxWords()
	}
	if l.Ban.For > 0 {
		n += banWords
	}
	return n
}

// MaxWords returns the most words that a state can have that l has made, without those of
// an earlier limit. It is for weir's own stores; see [Compiled.WordsAfter].
func (l *Compiled) MaxWords() int { return l.maxWords }

// Parts returns the limit that counts hits towards the condition of l ([Limit.After]),
// and l without its condition. If l has no condition they are nil and l itself.
func (l *Compiled) Parts() (base, inner *Compiled) {
	if l.base == nil {
		return nil, l
	}
	return l.base, l.inner
}
