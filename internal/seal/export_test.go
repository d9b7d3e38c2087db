package seal

// SIPHash returns the hash of a text and bytes behind it.
func SIPHash(k *Key, text string, bytes []byte) uint64 {
	s := newSIP(k)
	s.text(text)
	s.bytes(bytes)
	return s.sum()
}
