package measure

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// KeyLength is the length of every key.
const KeyLength = 24

// Keys are strings in one piece of memory. The garbage collector has nothing to
// scan, and a call pays nothing to make a key.
type Keys struct{ text string }

// NewKeys returns n keys.
func NewKeys(n int) Keys {
	var b strings.Builder
	b.Grow(n * KeyLength)
	for i := range n {
		fmt.Fprintf(&b, "user:%0*d", KeyLength-len("user:"), i)
	}
	return Keys{b.String()}
}

// Len returns the number of keys.
func (k Keys) Len() int { return len(k.text) / KeyLength }

// At returns the key with the number i.
func (k Keys) At(i uint32) string {
	at := int(i) * KeyLength
	return k.text[at : at+KeyLength]
}

// draws is the length of a series of keys, which then repeats.
const draws = 1 << 21

// Draw is a series of key numbers. Its length is a power of two.
type Draw []uint32

// One returns a series of the first key only.
func One() Draw { return Draw{0} }

// Uniform returns a series in which n keys are equally frequent.
func Uniform(n int) Draw {
	rng := rand.New(rand.NewPCG(1, 2))
	d := make(Draw, draws)
	for i := range d {
		d[i] = rng.Uint32N(uint32(n))
	}
	return d
}

// Zipf returns a series in which a few of n keys are frequent, as in real
// traffic, with exponent 1.1. Frequent keys are not adjacent in memory.
func Zipf(n int) Draw {
	rng := rand.New(rand.NewPCG(3, 4))
	zipf := rand.NewZipf(rng, 1.1, 1, uint64(n-1))
	place := rng.Perm(n)
	d := make(Draw, draws)
	for i := range d {
		d[i] = uint32(place[zipf.Uint64()])
	}
	return d
}

// From returns the keys from number i on.
func (k Keys) From(i int) Keys { return Keys{k.text[i*KeyLength:]} }
