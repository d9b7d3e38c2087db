package seal

import "github.com/weirhq/weir/window"

// Secrets are the secrets of a store. New receipts are sealed under the first one. The
// second one is the last that was in use before: it is valid until an instant of the
// wall clock. Secrets are comparable, and must not be changed once they are shared.
type Secrets struct {
	List  [2]Secret
	Until window.Instant // 0: there is no second secret
}

// Valid returns the secrets that are valid at now. The caller must not change them.
func (s *Secrets) Valid(now window.Instant) []Secret {
	if now < s.Until {
		return s.List[:]
	}
	return s.List[:1]
}

// Rotated returns s with next for new receipts. The previous secret stays valid until an instant, and
// older ones become invalid.
func (s *Secrets) Rotated(next Secret, until window.Instant) *Secrets {
	return &Secrets{[2]Secret{next, s.List[0]}, until}
}
