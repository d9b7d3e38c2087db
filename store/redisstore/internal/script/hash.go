package script

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/weirhq/weir/store"
)

// digest returns a hash of the space and the key of op, the same in every
// process. The lengths come first, so that no two pairs are hashed as the same
// bytes. A namespace stands behind a mark that no length can be.
func digest(op *store.Op) [sha256.Size]byte {
	var buf [256]byte
	b := buf[:0]
	if namespace := op.Space.Namespace(); namespace != "" {
		b = append(b, noLength...)
		b = binary.AppendUvarint(b, uint64(len(namespace)))
		b = append(b, namespace...)
	}
	b = binary.AppendUvarint(b, uint64(len(op.Space.ID())))
	b = append(b, op.Space.ID()...)
	b = append(b, op.Key...)
	return sha256.Sum256(b)
}

// noLength is longer than any number in [binary.AppendUvarint]'s encoding.
const noLength = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"

// fingerprint returns what a state keeps of a member: 64 bits of its SHA-256, the
// same in every process.
func fingerprint(member []byte) uint64 {
	sum := sha256.Sum256(member)
	return binary.LittleEndian.Uint64(sum[:])
}
