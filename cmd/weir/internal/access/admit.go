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
// The error is a [*Refusal]. It is for front ends without HTTP; [Lock.Enter] is for
// those with it.
func (l *Lock) Admit(c Credentials, need Scope) (*Holder, error) {
	if l == nil {
		return everyone, nil
	}
	h, no := l.admit(c, need)
	if no != nil {
		return nil, l.refuse(no)
	}
	return h, nil
}

// admit decides like Admit, and counts no refusal.
func (l *Lock) admit(c Credentials, need Scope) (*Holder, *Refusal) {
	if l.Keys == nil {
		return everyone, nil
	}
	h, no := l.holder(c)
	if no != nil {
		return nil, no
	}
	if no := l.Reach.refuses(h); no != nil {
		return nil, no
	}
	no = h.lacks(need)
	return h, no
}

// holder returns who shows c: the holder of the token or, without one, of the
// certificate.
func (l *Lock) holder(c Credentials) (*Holder, *Refusal) {
	if c.Shown {
		h, err := l.Keys.Holder(c.Token, c.Address)
		if err != nil {
			return nil, err.(*Refusal) //nolint:errorlint // Holder returns no other error
		}
		return h, nil
	}
	if c.Certificate == nil {
		return nil, &Refusal{Reason: Missing, Detail: "the call needs a token: send Authorization: Bearer TOKEN"}
	}
	if h := l.Keys.Certificate(c.Certificate); h != nil {
		return h, nil
	}
	return nil, &Refusal{
		Reason: Missing,
		Detail: fmt.Sprintf("the certificate of %s is not in the tokens file, and there is no token", strings.Join(CertificateNames(c.Certificate), ", ")),
	}
}

// refuse counts a refusal, and returns it.
func (l *Lock) refuse(no *Refusal) error {
	if l != nil && l.Refused != nil {
		l.Refused(no.Reason)
	}
	return no
}
