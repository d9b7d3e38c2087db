package seal_test

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/weirhq/weir/internal/seal"
)

// Whoever changes any bit of a receipt, or uses another key, breaks the seal.
func TestSeal(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	key := seal.Key{7: 3}
	r := key.Seal(some)
	if !key.Sealed(&r) {
		t.Fatalf("%+v: got no seal of its own key", r)
	}
	if key.Sealed(&some) {
		t.Errorf("%+v: got a seal, want none", some)
	}
	for i := range 8 * len(key) {
		other := key
		other[i/8] ^= 1 << (i % 8)
		if other.Sealed(&r) {
			t.Errorf("got the seal of a key of which bit %d differs", i)
		}
	}
	text, forged := r.String(), 0
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for range 20_000 {
		b := []byte(text)
		for range 1 + rng.IntN(3) {
			b[rng.IntN(len(b))] = letters[rng.IntN(len(letters))]
		}
		changed, ok := seal.Parse(string(b))
		if !ok || string(b) == text {
			continue
		}
		forged++
		if key.Sealed(&changed) {
			t.Errorf("%q: got the seal of %q", b, text)
		}
	}
	if forged < 10_000 {
		t.Errorf("got %d receipts that were changed, want many", forged)
	}
}

// Digests differ with the key, and with where one text ends and the next begins.
func TestDigest(t *testing.T) {
	t.Parallel()
	digest := func(k seal.Key, texts ...string) uint64 {
		d, b := k.Digest(), k.Digest()
		for _, text := range texts {
			d.Text(text)
			b.Bytes([]byte(text))
		}
		if d.Sum() != b.Sum() {
			t.Errorf("%q: got digest %x of texts, and %x of bytes", texts, d.Sum(), b.Sum())
		}
		return d.Sum()
	}
	seen := map[uint64]int{}
	for i, texts := range [][]string{nil, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"b", "a"}, {"user 42, and a longer text"}, {"user 42", ", and a longer text"}} {
		for n := range 3 {
			sum := digest(seal.Key{byte(n)}, texts...)
			if before, ok := seen[sum]; ok {
				t.Errorf("got the digest of case %d again for case %d", before, i)
			}
			seen[sum] = i
		}
	}
	far := 0
	for i := range 64 {
		a, b := seal.Key{}, seal.Key{15: 1}
		d, e := a.Digest(), b.Digest()
		d.Number(uint64(i))
		e.Number(uint64(i))
		far += bits.OnesCount64(d.Sum() ^ e.Sum())
	}
	if far < 64*24 || far > 64*40 {
		t.Errorf("got %d bits that differ of %d, want about half", far, 64*64)
	}
}
