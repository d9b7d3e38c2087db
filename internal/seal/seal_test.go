package seal_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/weirhq/weir/internal/seal"
	"github.com/weirhq/weir/window"
)

func keyOf(secret seal.Secret) *seal.Key {
	k := new(seal.Key)
	k.Use(secret)
	return k
}

// The seal is what any implementation of HMAC-SHA256 gives for the other bytes of the
// receipt behind an s, cut to 16 bytes. A Key that has used another secret gives the same.
func TestSealIsHMAC(t *testing.T) {
	t.Parallel()
	secret := seal.Secret{1, 2, 3}
	key := keyOf(seal.Secret{9})
	_ = key.Seal(some)
	key.Use(secret)
	for _, wall := range []window.Instant{some.At, some.At - 77} {
		r := some
		r.Wall = wall
		r = key.Seal(r)
		raw, err := base64.RawURLEncoding.DecodeString(r.String())
		if err != nil {
			t.Fatal(err)
		}
		h := hmac.New(sha256.New, secret[:])
		h.Write(append([]byte("s"), raw[:len(raw)-16]...))
		if want := h.Sum(nil)[:16]; !bytes.Equal(r.Seal[:], want) || !bytes.Equal(raw[len(raw)-16:], want) {
			t.Errorf("got seal %x, want %x", r.Seal, want)
		}
	}
}

// Whoever changes any bit of a receipt, or uses another key, breaks the seal.
func TestSeal(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	secret := seal.Secret{7: 3}
	key := keyOf(secret)
	r := key.Seal(some)
	if !key.Sealed(&r) {
		t.Fatalf("%+v: got no seal of its own key", r)
	}
	if key.Sealed(&some) {
		t.Errorf("%+v: got a seal, want none", some)
	}
	for i := range 8 * len(secret) {
		other := secret
		other[i/8] ^= 1 << (i % 8)
		if keyOf(other).Sealed(&r) {
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
	digest := func(secret seal.Secret, texts ...string) uint32 {
		d, b := keyOf(secret).Digest(), keyOf(secret).Digest()
		for _, text := range texts {
			d.Text(text)
			b.Bytes([]byte(text))
		}
		if d.Sum() != b.Sum() {
			t.Errorf("%q: got digest %x of texts, and %x of bytes", texts, d.Sum(), b.Sum())
		}
		return d.Sum()
	}
	seen := map[uint32]int{}
	for i, texts := range [][]string{nil, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"b", "a"}, {"user 42, and a longer text"}, {"user 42", ", and a longer text"}} {
		for n := range 3 {
			sum := digest(seal.Secret{byte(n)}, texts...)
			if before, ok := seen[sum]; ok {
				t.Errorf("got the digest of case %d again for case %d", before, i)
			}
			seen[sum] = i
		}
	}
	far := 0
	for i := range 64 {
		d, e := new(seal.Key).Digest(), keyOf(seal.Secret{15: 1}).Digest()
		d.Number(uint64(i))
		e.Number(uint64(i))
		far += bits.OnesCount32(d.Sum() ^ e.Sum())
	}
	if far < 64*12 || far > 64*20 {
		t.Errorf("got %d bits that differ of %d, want about half", far, 64*32)
	}
}

func TestAllocations(t *testing.T) {
	key := keyOf(seal.Secret{1})
	text, room := some.String(), make([]byte, 0, seal.MaxLen)
	if n := testing.AllocsPerRun(100, func() {
		r, ok := seal.Parse(text)
		if !ok {
			t.Errorf("%q: got no receipt", text)
		}
		r = key.Seal(r)
		d := key.Digest()
		d.Text(text)
		if d.Sum(); !key.Sealed(&r) {
			t.Errorf("%+v: got no seal", r)
		}
		room = r.Append(room[:0])
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

// BenchmarkSeal seals a receipt, and hashes what a take has counted in one rule.
//
//	go test -run '^$' -bench Seal ./internal/seal
func BenchmarkSeal(b *testing.B) {
	key := keyOf(seal.Secret{7: 3})
	space, member := "llm-calls\x05count\x07sliding", []byte("team-4711")
	b.Run("seal", func(b *testing.B) {
		r := some
		for b.Loop() {
			r = key.Seal(r)
		}
	})
	b.Run("digest", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d := key.Digest()
			d.Text("")
			d.Text(space)
			d.Bytes(member)
			d.Bytes(nil)
			d.Number(1)
			_ = d.Sum()
		}
	})
}
