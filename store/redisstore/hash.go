package redisstore

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/weirhq/weir/store"
)

// digest is a hash of the space and the key of op, the same in every process.
// The lengths come first, so that no two pairs are hashed as the same bytes.
func digest(op *store.Op) [sha256.Size]byte {
	var buf [256]byte
	b := binary.AppendUvarint(buf[:0], uint64(len(op.Space.ID)))
	b = append(b, op.Space.ID...)
	b = append(b, op.Key...)
	return sha256.Sum256(b)
}

// fingerprint is what is kept of a member: 64 bits of its SHA-256, the same in
// every process.
func fingerprint(member []byte) uint64 {
	sum := sha256.Sum256(member)
	return binary.LittleEndian.Uint64(sum[:])
}
