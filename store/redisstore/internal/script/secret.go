package script

import (
	"fmt"
	"strings"
)

// The secret under which the stores on one prefix seal receipts has its own key
// ([keyname.Names.Secret]), which never expires. Its value is a version, the code of a
// secret, and its bytes, as [remote.Secrets] has them.
const codeSecret byte = 14 // after the codes of states

// EncodeSecret returns the value of the key of a secret.
func EncodeSecret(secret []byte) string {
	return string(append([]byte{version, codeSecret}, secret...))
}

// DecodeSecret returns the secret that has the value, which is at key.
func DecodeSecret(key, value string) ([]byte, error) {
	body, ok := strings.CutPrefix(value, string([]byte{version, codeSecret}))
	if !ok {
		return nil, fmt.Errorf("key %q holds no secret that this version can read; delete it or use another prefix", key)
	}
	return []byte(body), nil
}

// RotateSecret makes ARGV[2] the value of the key of a secret if that is still ARGV[1].
// It returns whether it was.
const RotateSecret = `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1`

// isSecret reports whether a state is a secret.
func isSecret(state string) bool {
	return len(state) > 1 && state[0] == version && state[1] == codeSecret
}
