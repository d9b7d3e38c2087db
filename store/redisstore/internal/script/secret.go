package script

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/weirhq/weir/window"
)

// The secret under which the stores on one prefix seal receipts has its own key
// ([keyname.Names.Secret]), which never expires. Its value is a version, the code of a
// secret, and 16 random bytes. If the secret was rotated, the 16 bytes of the one before
// and the instant until which that is valid follow.
const codeSecret byte = 14 // after the codes of states

// Secrets are the secret of receipts, and the one before it.
type Secrets struct {
	List  [2][16]byte
	Until window.Instant // of the second one; 0: there is none
}

// EncodeSecret returns the value of the key of a secret.
func EncodeSecret(s *Secrets) string {
	value := append([]byte{version, codeSecret}, s.List[0][:]...)
	if s.Until > 0 {
		value = binary.LittleEndian.AppendUint64(append(value, s.List[1][:]...), uint64(s.Until))
	}
	return string(value)
}

// DecodeSecret returns the secrets that has the value, which is at key.
func DecodeSecret(key, value string) (s Secrets, err error) {
	body, ok := strings.CutPrefix(value, string([]byte{version, codeSecret}))
	if !ok || len(body) != 16 && len(body) != 40 {
		return s, fmt.Errorf("key %q holds no secret that this version can read; delete it or use another prefix", key)
	}
	copy(s.List[0][:], body)
	if len(body) > 16 {
		copy(s.List[1][:], body[16:])
		s.Until = window.Instant(binary.LittleEndian.Uint64([]byte(body[32:])))
	}
	return s, nil
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
