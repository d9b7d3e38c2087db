package access

import (
	"crypto/x509"
	"fmt"
	"strings"
)

// Credentials are what a caller shows, over any protocol.
type Credentials struct {
	// Token is the token that the caller shows, and Shown reports whether there is
	// one.
	Token string
	Shown bool

	// Certificate is the verified certificate of the connection, or nil.
	Certificate *x509.Certificate

	// Address is where the call comes from: an IP address with or without a port,
	// or empty for a local socket.
	Address string
}

// Admit returns the caller that shows c, if it may make a call that needs scopes.
// The error is a [*Refusal]. It is for front ends without HTTP; [Authenticator.Enter] is for
// those with it.
func (a *Authenticator) Admit(c Credentials, need Scope) (*Holder, error) {
	if a == nil {
		return everyone, nil
	}
	h, no := a.admit(c, need)
	if no != nil {
		return nil, a.refuse(no)
	}
	return h, nil
}

// admit decides like Admit, and counts no refusal.
func (a *Authenticator) admit(c Credentials, need Scope) (*Holder, *Refusal) {
	if a.Keys == nil {
		return everyone, nil
	}
	h, no := a.holder(c)
	if no != nil {
		return nil, no
	}
	if no := a.Reach.refuses(h); no != nil {
		return nil, no
	}
	no = h.lacks(need)
	return h, no
}

// holder returns who shows c: the holder of the token or, without one, of the
// certificate.
func (a *Authenticator) holder(c Credentials) (*Holder, *Refusal) {
	if c.Shown {
		h, err := a.Keys.Holder(c.Token, c.Address)
		if err != nil {
			return nil, err.(*Refusal) //nolint:errorlint // Holder returns no other error
		}
		return h, nil
	}
	if c.Certificate == nil {
		return nil, &Refusal{Reason: Missing, Detail: "the call needs a token: send Authorization: Bearer TOKEN"}
	}
	if h := a.Keys.Certificate(c.Certificate); h != nil {
		return h, nil
	}
	return nil, &Refusal{
		Reason: Missing,
		Detail: fmt.Sprintf("the certificate of %s is not in the tokens file, and there is no token", strings.Join(CertificateNames(c.Certificate), ", ")),
	}
}

// refuse counts a refusal, and returns it.
func (a *Authenticator) refuse(no *Refusal) error {
	if a != nil && a.Refused != nil {
		a.Refused(no.Reason)
	}
	return no
}
