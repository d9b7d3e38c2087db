package measure

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// KeyLength is the length of every key.
const KeyLength = 24

// Keys are strings that stand in one piece of memory, so that they give the
// garbage collector nothing to scan and cost a call nothing to make.
type Keys struct{ text string }

// NewKeys makes n keys.
func NewKeys(n int) Keys {
	var b strings.Builder
	b.Grow(n * KeyLength)
	for i := range n {
		fmt.Fprintf(&b, "user:%0*d", KeyLength-len("user:"), i)
	}
	return Keys{b.String()}
}

// Len is how many keys there are.
func (k Keys) Len() int { return len(k.text) / KeyLength }

// At is the key with the number i.
func (k Keys) At(i uint32) string {
	at := int(i) * KeyLength
	return k.text[at : at+KeyLength]
}

// draws is how many keys are drawn before the series starts again.
const draws = 1 << 21

// Draw is a series of keys, by number. Its length is a power of two.
type Draw []uint32

// One draws the first key only.
func One() Draw { return Draw{0} }

// Uniform draws each of n keys as often as any other.
func Uniform(n int) Draw {
	rng := rand.New(rand.NewPCG(1, 2))
	d := make(Draw, draws)
	for i := range d {
		d[i] = rng.Uint32N(uint32(n))
	}
	return d
}

// Zipf draws a few of n keys most of the time, as people do, with exponent
// 1.1. The frequent ones do not stand side by side in memory.
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

// From is the keys from number i on.
func (k Keys) From(i int) Keys { return Keys{k.text[i*KeyLength:]} }
