package table_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirhq/weir/store/memstore/internal/table"
)

// first is the expiry of the tests: a key expires at its state's first word. It cannot read
// a state that is torn.
type first struct{}

func (first) Expires(state []uint64) int64 {
	if state[0] == torn {
		panic("a state was read while it is replaced")
	}
	return int64(state[0])
}

// torn is the first word of a state that a caller has changed in part before it replaces it.
const torn = 1 << 63

func at(horizon int64) table.Expiry { return table.Expiry{Lives: first{}, Horizon: horizon} }

// pair is a table and the map that it should be equal to.
type pair struct {
	testing.TB
	table table.Table
	model map[table.Hash][]uint64
	now   int64
}

func newPair(t testing.TB) *pair { return &pair{TB: t, model: make(map[table.Hash][]uint64)} }

// put puts a state of n words that expires after life.
func (p *pair) put(h table.Hash, n int, life int64) {
	state := make([]uint64, n)
	for i := range state {
		state[i] = uint64(p.now+life) + uint64(i)*uint64(h)
	}
	before := p.table.Keys()
	known := p.table.Find(h).Known()
	if known {
		p.table.Find(h).State()[0] = torn
	}
	reclaimed := p.table.Put(p.table.Find(h), h, state, p.now+life, at(p.now))
	if got := p.table.Keys() - before + reclaimed; got != 1 && !known {
		p.Fatalf("new key: got %d keys more and %d reclaimed, want 1 more", got-reclaimed, reclaimed)
	}
	p.model[h] = state
}

// change writes to a state in place, as a counter does: it lives as long or
// longer, or it is told that it does not.
func (p *pair) change(h table.Hash, life int64) {
	r := p.table.Find(h)
	if !r.Known() {
		return
	}
	state := r.State()
	n := 1 + int(uint64(h)%uint64(cap(state)))
	state = state[:n]
	for i := range state {
		state[i] = uint64(p.now+life) + uint64(i)
	}
	r.Resize(n)
	p.table.Touch(r, p.now+life)
	p.model[h] = slices.Clone(state)
}

func (p *pair) remove(h table.Hash) {
	if r := p.table.Find(h); r.Known() {
		p.table.Remove(r, h)
	}
	delete(p.model, h)
}

// check wants the table to have all keys of the model that have not expired,
// with their states, and counts those that have.
func (p *pair) check() (expired int) {
	p.Helper()
	kept := 0
	for h, want := range p.model {
		got := p.table.Find(h).State()
		switch {
		case got != nil && !slices.Equal(got, want):
			p.Fatalf("key %x: got state %v, want %v", h, got, want)
		case got == nil && !at(p.now).Over(want):
			p.Fatalf("key %x: got it gone %d before it expires", h, int64(want[0])-p.now)
		case got == nil:
			delete(p.model, h)
			continue
		}
		kept++
		if at(p.now).Over(want) {
			expired++
		}
	}
	if got := p.table.Keys(); got != kept {
		p.Fatalf("got %d keys, want %d", got, kept)
	}
	return expired
}

// round sweeps until the hand has been around from wherever it stood.
func (p *pair) round(b table.Budget) {
	for range 3 { // segments that merge or shrink on the way begin anew
		passed := 0
		for passed <= p.table.Entries() {
			w := p.table.Sweep(b, at(p.now))
			if passed += w.Passed; w.Looked == 0 {
				break
			}
		}
	}
}

// random does random steps, with keys that spread over a few segments or, with
// few bits, crowd in some slots.
func (p *pair) random(rng *rand.Rand, steps int) {
	keys := make([]table.Hash, 1<<(4+rng.IntN(9)))
	for i := range keys {
		keys[i] = table.Hash(rng.Uint64() >> 3)
		if i%4 == 0 {
			keys[i] &= 0x0fff_ff00_ffff_0000 // neighbours in the slots
		}
	}
	words := 1 + rng.IntN(40)
	for range steps {
		switch h := keys[rng.IntN(len(keys))]; rng.IntN(16) {
		default:
			p.put(h, 1+rng.IntN(words), 1+rng.Int64N(1000))
		case 0, 1, 2:
			p.remove(h)
		case 3, 4:
			p.change(h, 1+rng.Int64N(1000))
		case 5:
			p.table.Sweep(table.Budget{N: rng.IntN(64), Most: rng.IntN(512)}, at(p.now))
		case 6:
			p.table.Reclaim(p.table.Find(h), h, at(p.now))
		case 7:
			p.now += rng.Int64N(8)
		}
	}
	p.check()
}

func TestTableIsAMap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		p := newPair(t)
		p.random(rand.New(rand.NewPCG(seed, 0)), 20_000)
	}
}

func FuzzTableIsAMap(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { newPair(t).random(rand.New(rand.NewPCG(seed, 1)), 5000) })
}

// A cycle drops all keys that have expired, whatever was put, changed and
// removed since the hand began: the bounds never hide one.
func TestRoundMissesNoKey(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := newPair(t)
		p.random(rng, 5000)
		for range 10 {
			p.now += 1 + rng.Int64N(500)
			p.round(table.Budget{N: 1 + rng.IntN(100), Most: 1 + rng.IntN(600)})
			if got := p.check(); got != 0 {
				t.Fatalf("seed %d: got %d expired keys after a cycle, want none", seed, got)
			}
			p.random(rng, 500)
		}
	}
}

func TestEmptyTableTakesNothing(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	if p.table.Find(1).Known() || p.table.Bytes() != 0 || p.table.Entries() != 0 {
		t.Error("zero table: got keys or memory, want none")
	}
	p.random(rand.New(rand.NewPCG(1, 3)), 20_000)
	high := p.table.Bytes()
	p.now += 2000
	p.round(table.Budget{N: 100, Most: 100})
	if got := p.table.Bytes(); got != 0 || p.check() != 0 {
		t.Errorf("after all expired: got %d bytes for %d keys, want none of %d", got, p.table.Keys(), high)
	}
	p.random(rand.New(rand.NewPCG(2, 3)), 1000)
}

// A table whose keys cannot have expired costs one look.
func TestSweepSkips(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for h := range table.Hash(2000) {
		p.put(h<<40|h, 1, 1000)
	}
	if w := p.table.Sweep(table.Budget{N: 1000, Most: 1000}, at(999)); w.Looked != 1 || w.Reclaimed != 0 {
		t.Errorf("before the first key expires: got %+v, want one look", w)
	}
	if w := p.table.Sweep(table.Budget{N: 100, Most: 400}, at(1000)); w.Reclaimed < 200 || w.Looked < 400 {
		t.Errorf("when all have expired: got %+v, want most of 400 slots reclaimed", w)
	}
}

// A key that moves behind the hand, because one before it was removed, is not
// forgotten.
func TestRoundSeesWhatMoves(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	keys := []table.Hash{1 << 32, 2 << 32, 3 << 32, 4 << 32, 5 << 32} // in neighbouring slots, in this order
	for i, life := range []int64{1000, 1000, 500, 10, 5} {
		p.put(keys[i], 1, life)
	}
	p.now = 5
	p.round(table.Budget{N: 100, Most: 100}) // a new cycle begins
	p.table.Sweep(table.Budget{N: 2, Most: 2}, at(10))
	p.remove(keys[0]) // the third key moves to the second slot, which was passed
	p.now = 10
	p.round(table.Budget{N: 100, Most: 100})
	p.now = 500
	p.round(table.Budget{N: 100, Most: 100})
	if got := p.check(); got != 0 || p.table.Keys() != 1 {
		t.Errorf("got %d keys, want the one that has not expired", p.table.Keys())
	}
}

// The memory of keys that were removed goes back although no key expires.
func TestRemovedKeysGiveMemoryBack(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for h := range table.Hash(2000) {
		p.put(h<<40|h, 9, 1000)
	}
	p.round(table.Budget{N: 100, Most: 100})
	for h := range table.Hash(2000) {
		p.remove(h<<40 | h)
	}
	if p.round(table.Budget{N: 100, Most: 100}); p.table.Bytes() != 0 {
		t.Errorf("got %d bytes, want none", p.table.Bytes())
	}
}
