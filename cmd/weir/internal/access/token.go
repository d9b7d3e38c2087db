package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// prefix starts each token that NewToken returns, so that scanners for secrets
// recognise it.
const prefix = "weir_"

// minToken and maxToken bound the length of a token, in bytes. A token of
// minToken random characters cannot be guessed, whatever the rate.
const (
	minToken = 20
	maxToken = 512
)

// NewToken returns a new secret of 130 random bits, as text.
func NewToken() string { return prefix + rand.Text() }

// digest is the SHA-256 of a token. Tokens are long and random, so a slow hash
// for passwords would protect nothing more.
type digest [sha256.Size]byte

func digestOf(token string) digest { return sha256.Sum256([]byte(token)) }

// hashPrefix starts a hash in a tokens file.
const hashPrefix = "sha256:"

// Hash returns the hash of a token that a tokens file has instead of the token.
func Hash(token string) string {
	d := digestOf(token)
	return hashPrefix + hex.EncodeToString(d[:])
}

// parseHash reads what Hash returns.
func parseHash(text string) (d digest, err error) {
	b, err := hex.DecodeString(strings.TrimPrefix(text, hashPrefix))
	if err != nil || len(b) != len(d) {
		return d, fmt.Errorf("want %s and 64 hexadecimal digits; weir token new writes them", hashPrefix)
	}
	return digest(b), nil
}

// CheckToken returns an error if a token is too short to be safe, or cannot be
// sent in a header. The error does not contain the token.
func CheckToken(token string) error {
	if len(token) < minToken || len(token) > maxToken {
		return fmt.Errorf("has %d characters: want %d to %d; weir token new prints a good one", len(token), minToken, maxToken)
	}
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c >= 0x7f {
			return fmt.Errorf("character %d cannot be sent in a header; weir token new prints a good one", i+1)
		}
	}
	return nil
}
