package top

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"
)

// maxKey is the longest text of a key in bytes.
const maxKey = 200

// appendKey appends the text under which a key is shown: the key, cut to maxKey
// bytes. A text that was cut ends in eight bytes of the SHA-256 of the whole
// key, so that two long keys stay apart. This function is the only place where
// the package turns a key into text that it keeps.
func appendKey(b []byte, key string) []byte {
	if len(key) <= maxKey {
		return append(b, key...)
	}
	const sum, ellipsis = 8, "…"
	cut := maxKey - len(ellipsis) - hex.EncodedLen(sum)
	for n := 0; n < utf8.UTFMax && !utf8.RuneStart(key[cut]); n++ {
		cut--
	}
	whole := sha256.Sum256([]byte(key))
	b = append(append(b, key[:cut]...), ellipsis...)
	return hex.AppendEncode(b, whole[:sum])
}
