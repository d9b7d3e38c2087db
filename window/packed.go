package window

// A Packed says how the state of one key fits in one 64-bit word, under one limit.
// The word can then be changed by compare-and-swap, without a lock. [Compiled.Pack]
// makes a Packed; the zero Packed fits no state. A Packed is immutable.
//
// Two words of the same Packed are equal exactly when their states are. So a
// compare-and-swap that succeeds has replaced the very state that Take was given,
// also when the state has changed and changed back in between.
type Packed struct {
	kind packer
	base Instant
	most int64 // the limit's capacity
}

// packer is an algorithm whose states fit in a word, with a base that stays the
// same while the word changes.
type packer interface {
	// packs reports whether this limit has such states.
	packs() bool

	// baseOf returns a base with which s, which is not empty, may fit.
	baseOf(s State) Instant

	// pack returns the word of s, which is not empty, or ok = false when s
	// does not fit with this base.
	pack(s State, base Instant) (word uint64, ok bool)

	// unpack writes the state of a word into s, whatever s holds.
	unpack(s State, base Instant, word uint64) State

	// takeWord is Take for n hits, at least one, at an instant that is not
	// before 0 and not after lastInstant. used is the number of hits before
	// the take. wait is 0 when the hits are admitted. Otherwise it is the time
	// until they fit, in microseconds, or neverFits; and next is the word
	// itself. reset is the time until the key is as good as unused, or 0. A
	// negative wait says that the next state does not fit with this base.
	//
	// The numbers are returned in registers. A pointer to a result would have
	// to be on the heap.
	takeWord(base Instant, word uint64, now Instant, n int64) (next uint64, used, wait, reset int64)

	// takeState is takeWord for a state, which is not empty. It changes the state in
	// place. A negative wait says that it has not, and that takeWord cannot tell.
	takeState(s State, now Instant, n int64) (next State, used, wait, reset int64)
}

// neverFits is the wait of takeWord for hits that never fit, and unfit that for a
// state that does not fit.
const (
	neverFits = 1<<63 - 1
	unfit     = -1
)

// packerOf returns a as a packer, or nil when its states do not fit in words for
// long enough to be worth it.
func packerOf(a algorithm) packer {
	if p, ok := a.(packer); ok && p.packs() {
		return p
	}
	return nil
}

// Packs reports whether states under l can fit in a word.
func (l *Compiled) Packs() bool { return l.packer != nil }

// Pack returns s, which is not empty, as a word. It reports false when s does not
// fit, although l packs: a state with holds, or a bucket's that another quota has
// left.
func (l *Compiled) Pack(s State) (p Packed, word uint64, ok bool) {
	if l.packer == nil || l.isAround(s) {
		return p, 0, false
	}
	p = Packed{l.packer, l.packer.baseOf(s), l.capacity}
	word, ok = p.Repack(s)
	return p, word, ok
}

// Repack returns another state of the same key, which is not empty, as a word. It
// reports false when the state does not fit p. Another Packed may fit then.
func (p *Packed) Repack(s State) (word uint64, ok bool) {
	if s[0] >= heldMark { // a state with holds or a ban
		return 0, false
	}
	return p.kind.pack(s, p.base)
}

// Take counts n hits at now if the limit admits them, as [Compiled.Take] does, and
// returns the next word. If they are denied, next is word itself. It writes the
// answer into r, which must be the zero Result. It reports false when it cannot
// tell, because the next state does not fit: then r is not the answer.
func (p *Packed) Take(r *Result, word uint64, now Instant, n int64) (next uint64, ok bool) {
	if now < 0 || now > lastInstant || n < 1 {
		return word, false
	}
	next, used, wait, reset := p.kind.takeWord(p.base, word, now, n)
	if wait == unfit {
		return word, false
	}
	r.taken(p.most, n, used, wait, reset)
	return next, true
}

// taken fills in r, which is empty, with what takeWord returned for n hits under a
// limit that admits most.
func (r *Result) taken(most, n, used, wait, reset int64) {
	r.Before, r.Quota, r.ResetAfter = used, most, Instant(reset).length()
	switch wait {
	case 0:
		r.Allowed = true
		used += n
	case neverFits:
		r.RetryAfter = Never
	default:
		r.RetryAfter = Instant(wait).length()
	}
	r.Used, r.Remaining = used, Unlimited
	if most != Unlimited {
		r.Remaining = max(0, most-used)
	}
}

// Unpack writes the state of a word into s, whatever s holds, and returns it.
func (p *Packed) Unpack(s State, word uint64) State { return p.kind.unpack(s, p.base, word) }

// A fixed or calendar window: the base is the mark, the word counts the hits.

// leastPacked is the shortest period, in microseconds, that is worth a base of
// its own.
const leastPacked = 10_000

func (p *period) packs() bool { return p.calendar != nil || p.length >= leastPacked }

func (p *period) baseOf(s State) Instant { return Instant(s[0]) }

func (p *period) pack(s State, base Instant) (word uint64, ok bool) {
	return s[1], Instant(s[0]) == base
}

func (p *period) unpack(s State, base Instant, word uint64) State {
	return append(s[:0], uint64(base), word)
}

func (p *period) takeWord(base Instant, word uint64, now Instant, n int64) (next uint64, used, wait, reset int64) {
	now = max(now, p.since(uint64(base)))
	used, reset = int64(word), int64(p.end(uint64(base))-now)
	switch {
	case reset <= 0 || n > MaxHits-used:
		return word, used, unfit, 0
	case p.quota == Unlimited || used <= p.quota-n:
		return uint64(used + n), used, 0, reset
	case n > p.quota:
		return word, used, neverFits, reset
	}
	return word, used, reset, reset
}

func (p *period) takeState(s State, now Instant, n int64) (next State, used, wait, reset int64) {
	word, used, wait, reset := p.takeWord(Instant(s[0]), s[1], now, n)
	if wait == 0 {
		s[1] = word
	}
	return s, used, wait, reset
}

// A bucket: the word is the time that is booked, as a signed number of parts of a
// microsecond after the base. A part is 1/parts, so that a hit is a whole number
// of parts. Most quotas need one part, or a few.

// grain is how a bucket counts in parts.
type grain struct {
	parts int64 // of a microsecond; 0: too many for a word
	hit   int64 // parts that a hit books
	full  int64 // parts that burst hits book
}

const (
	mostParts = 1 << 20
	// farthest is how far from the base instants may be, in microseconds: 25
	// days. Invariant: farthest, mostFull and their product with mostParts leave
	// room for sums in 63 bits.
	farthest = 1 << 41
	mostFull = 1 << 60
)

// grainOf returns how a bucket counts in parts.
func grainOf(quota, length, burst int64) (g grain) {
	if quota < 1 || burst < 1 {
		return g
	}
	common := max(1, gcd(length, quota))
	parts, hit := quota/common, length/common
	if parts > mostParts || burst > mostFull/hit {
		return g
	}
	return grain{parts: parts, hit: hit, full: burst * hit}
}

func (b *bucket) packs() bool { return b.grain.parts > 0 }

func (b *bucket) baseOf(s State) Instant { return Instant(s[0]) }

func (b *bucket) pack(s State, base Instant) (word uint64, ok bool) {
	g, f := &b.grain, uint64(0)
	if len(s) == bucketWords {
		f = s[1]
		if s[2] != uint64(b.quota) {
			return 0, false
		}
	}
	ahead := int64(s[0]) - int64(base)
	if ahead < 0 || ahead > farthest {
		return 0, false
	}
	word = uint64(ahead * g.parts)
	if f > 0 { // a division takes 5 ns
		common := uint64(b.quota / g.parts)
		if f%common != 0 {
			return 0, false
		}
		word += f / common
	}
	return word, true
}

func (b *bucket) unpack(s State, base Instant, word uint64) State {
	g := &b.grain
	if g.parts == 1 {
		return append(s[:0], uint64(int64(base)+int64(word)))
	}
	until, f := int64(word)/g.parts, int64(word)%g.parts
	return book(s, uint64(int64(base)+until), uint64(f*(b.quota/g.parts)), uint64(b.quota))
}

func (b *bucket) takeWord(base Instant, word uint64, now Instant, n int64) (next uint64, used, wait, reset int64) {
	g := &b.grain
	age := int64(now - base)
	if age > farthest || age < -farthest {
		return word, 0, unfit, 0
	}
	at, booked := age*g.parts, int64(word)
	ahead := max(booked-at, 0)
	switch { // ⌈ahead / hit⌉, at most the burst
	case ahead > g.full-g.hit: // also where one hit is denied, which saves the division, 5 ns
		used = b.burst
	case ahead > 0:
		used = int64((uint64(ahead) + uint64(g.hit) - 1) / uint64(g.hit))
	}
	switch {
	case n > b.burst:
		wait = neverFits
	case ahead > g.full-n*g.hit:
		wait = g.up(ahead - (g.full - n*g.hit))
	default:
		booked = at + ahead + n*g.hit
	}
	return uint64(booked), used, wait, max(0, g.up(booked)-age)
}

func (b *bucket) takeState(s State, now Instant, n int64) (next State, used, wait, reset int64) {
	if cap(s) < bucketWords {
		return s, 0, unfit, 0
	}
	base := b.baseOf(s)
	word, ok := b.pack(s, base)
	if !ok {
		return s, 0, unfit, 0
	}
	word, used, wait, reset = b.takeWord(base, word, now, n)
	if wait == 0 {
		s = b.unpack(s, base, word)
	}
	return s, used, wait, reset
}

// up returns parts, which is not negative, as microseconds, rounded up.
func (g *grain) up(parts int64) int64 {
	if g.parts == 1 {
		return parts
	}
	return int64((uint64(parts) + uint64(g.parts) - 1) / uint64(g.parts))
}
