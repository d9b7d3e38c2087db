package access

import "crypto/sha256"

// attempt is what the last attempt to read some files has read.
type attempt [sha256.Size]byte

// same reports whether err and contents are those of the last attempt, and
// remembers them.
func (a *attempt) same(err error, contents ...[]byte) bool {
	h := sha256.New()
	if err != nil {
		h.Write([]byte("error " + err.Error()))
	} else {
		for _, c := range contents {
			sum := sha256.Sum256(c)
			h.Write(sum[:])
		}
	}
	next := attempt(h.Sum(nil))
	same := next == *a
	*a = next
	return same
}
