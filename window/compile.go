package window

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

	// log is the algorithm where states can be plain logs, see log.go; or nil.
	log *sliding

	// Of a limit with a condition, otherwise nil.
	base, inner *Compiled

	// around reports whether the limit holds or bans, see around.go. holding is
	// the algorithm around algorithm that counts holds, or nil when the kind
	// cannot hold. anyWord reports whether states begin with any word.
	around  bool
	holding *holding
	anyWord bool
}

// Compile makes l ready for use. Its error is a [fault.List] of everything that is wrong
// with l. The paths of the faults are "quota", "measure", "window.length",
// "after.window.n" and so on. It refuses limits that need products above 2^53, because
// the script of a shared store could not compute those exactly.
func Compile(l Limit) (*Compiled, error) {
	f := faults{}
	l.validate(&f)
	if err := f.list.Err(); err != nil {
		return nil, err
	}
	return compile(l), nil
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
func compile(l Limit) *Compiled {
	c := &Compiled{Limit: &l, recounts: l.Measure == Distinct}
	for i := range wrappers {
		if w := &wrappers[i]; w.wraps(&l) {
			w.compile(c, compile)
			return c
		}
	}
	kind := &kinds[l.Window.Kind]
	if l.Measure == Distinct {
		c.algorithm = kind.members(&l)
		c.anyWord = l.Window.Kind == KindSliding
		return c
	}
	c.algorithm = kind.compile(&l)
	c.holding = newHolding(&l, c.algorithm)
	c.around = l.Hold > 0
	c.recounts = c.recounts || kind.holds
	if !c.around {
		c.log = plainLog(c.algorithm)
	}
	return c
}

// Parts returns the limit that counts hits towards the condition of l ([Limit.After]),
// and l without its condition. If l has no condition they are nil and l itself.
func (l *Compiled) Parts() (base, inner *Compiled) {
	if l.base == nil {
		return nil, l
	}
	return l.base, l.inner
}
