package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/weirhq/weir/window"
)

// Secret is a secret of 128 random bits under which a store's receipts are sealed.
type Secret = [16]byte

// Key seals receipts, and digests what takes count, by HMAC-SHA256 under a [Secret].
// Without the secret nobody can make or change a receipt. A Key reuses its memory, so it is not
// safe for concurrent use. The zero Key has the zero Secret, which protects nothing.
type Key struct {
	secret Secret
	mac    hash.Hash // under secret; nil: not made yet
	in     []byte
	sum    []byte
}

// The first byte of what is authenticated distinguishes digests from seals, so that a digest is
// never a valid seal.
const (
	ofDigest = 'd'
	ofSeal   = 's'
)

// Use makes k use secret from now on.
func (k *Key) Use(secret Secret) {
	if k.secret != secret {
		k.secret, k.mac = secret, nil
	}
}

// authenticate returns the HMAC of k.in, which is valid until k is used again.
func (k *Key) authenticate() []byte {
	if k.mac == nil {
		k.mac = hmac.New(sha256.New, k.secret[:])
	}
	k.mac.Reset()
	k.mac.Write(k.in)
	k.sum = k.mac.Sum(k.sum[:0])
	return k.sum
}

// Seal returns r with a seal under k. The seal covers all other fields.
func (k *Key) Seal(r Take) Take {
	k.in = r.appendFields(append(k.in[:0], ofSeal))
	r.Seal = [sealSize]byte(k.authenticate())
	return r
}

// Sealed reports whether r has a valid seal under k.
func (k *Key) Sealed(r *Take) bool {
	want := k.Seal(*r).Seal
	return hmac.Equal(want[:], r.Seal[:])
}

// Digest is the digest of what a take counted, under a [Key]. Make one with
// [Key.Digest].
type Digest struct{ key *Key }

// Digest begins the digest of nothing under k, which must not be used for anything else
// until [Digest.Sum].
func (k *Key) Digest() Digest {
	k.in = append(k.in[:0], ofDigest)
	return Digest{k}
}

// Number adds n to the digest.
func (d Digest) Number(n uint64) { d.key.in = binary.LittleEndian.AppendUint64(d.key.in, n) }

// Text adds the length of t, and t, to the digest.
func (d Digest) Text(t string) {
	d.Number(uint64(len(t)))
	d.key.in = append(d.key.in, t...)
}

// Bytes adds the length of b, and b, to the digest.
func (d Digest) Bytes(b []byte) {
	d.Number(uint64(len(b)))
	d.key.in = append(d.key.in, b...)
}

// Sum returns the digest of all that was added. It is never 0.
func (d Digest) Sum() uint32 { return max(binary.LittleEndian.Uint32(d.key.authenticate()), 1) }

// Secrets are the secrets of a store. New receipts are sealed under the first one. The
// second one is the last that was in use before: it is valid until an instant of the
// wall clock. Secrets are comparable, and must not be changed once they are shared.
type Secrets struct {
	List  [2]Secret
	Until window.Instant // 0: there is no second secret
}

// Valid returns the secrets that are valid at now. The caller must not change them.
func (s *Secrets) Valid(now window.Instant) []Secret {
	if now < s.Until {
		return s.List[:]
	}
	return s.List[:1]
}

// Rotated returns s with next for new receipts. The previous secret stays valid until an instant, and
// older ones become invalid.
func (s *Secrets) Rotated(next Secret, until window.Instant) *Secrets {
	return &Secrets{[2]Secret{next, s.List[0]}, until}
}
