package seal

import "encoding/binary"

// Key is a secret of 128 bits under which receipts are sealed. Whoever does not
// know the key cannot make a receipt, and cannot change one. The zero Key is as
// good as no secret. A Key is safe for concurrent use as long as it does not change.
type Key [16]byte

// What is hashed under a key, so that one hash is never taken for the other: in a
// digest the first eight bytes, in a seal the 14th byte, which is 0 in the number
// behind the first eight of a digest.
const (
	ofDigest = 'd'
	ofSeal   = 's'
)

// Seal returns r with a seal under k. The seal covers all other fields.
func (k *Key) Seal(r Take) Take {
	r.Seal = k.seal(&r)
	return r
}

// Sealed reports whether r has a seal under k, and was not changed since.
func (k *Key) Sealed(r *Take) bool { return r.Seal == k.seal(r) }

func (k *Key) seal(r *Take) uint64 {
	s := newSIP(k)
	s.eight(binary.LittleEndian.Uint64(r.ID[:8]))
	s.eight(uint64(binary.LittleEndian.Uint32(r.ID[8:])) | uint64(r.Place)<<32 | ofSeal<<40)
	s.eight(uint64(r.At))
	s.eight(uint64(r.Wall))
	s.eight(r.Digest)
	return s.sum()
}

// Digest is the digest of what a take counted, under a [Key]. Make one with
// [Key.Digest].
type Digest struct{ sip sip }

// Digest returns the digest of nothing under k.
func (k *Key) Digest() Digest {
	d := Digest{newSIP(k)}
	d.sip.eight(ofDigest)
	return d
}

// Number adds n to the digest.
func (d *Digest) Number(n uint64) {
	d.sip.eight(n)
}

// Text adds the length of t, and t, to the digest.
func (d *Digest) Text(t string) {
	d.Number(uint64(len(t)))
	d.sip.text(t)
}

// Bytes adds the length of b, and b, to the digest.
func (d *Digest) Bytes(b []byte) {
	d.Number(uint64(len(b)))
	d.sip.bytes(b)
}

// Sum returns the digest of all that was added. It is never 0.
func (d *Digest) Sum() uint64 { return max(d.sip.sum(), 1) }
