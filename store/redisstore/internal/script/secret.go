package script

import (
	"fmt"
	"strings"
)

// The secret under which the stores on one prefix seal receipts is at a key of its
// own, which lives for ever:
//
//	weir:secret
//
// Its value is a version, the code of a secret, and 16 random bytes. No counter has
// a key of this name: behind the prefix it would have a brace.
const secretName = "secret"

const codeSecret byte = 14 // behind the codes of states

// Secret returns the name of the key of the secret.
func (n Names) Secret() string { return n.prefix + string(keySeparator) + secretName }

// EncodeSecret returns the value of the key of a secret.
func EncodeSecret(secret [16]byte) string {
	return string([]byte{version, codeSecret}) + string(secret[:])
}

// DecodeSecret returns the secret that has the value, which is at key.
func DecodeSecret(key, value string) (secret [16]byte, err error) {
	body, ok := strings.CutPrefix(value, string([]byte{version, codeSecret}))
	if !ok || len(body) != len(secret) {
		return secret, fmt.Errorf("key %q holds no secret that this version can read; delete it or use another prefix", key)
	}
	return [16]byte([]byte(body)), nil
}

// isSecret reports whether a state is a secret.
func isSecret(state string) bool {
	return len(state) > 1 && state[0] == version && state[1] == codeSecret
}
