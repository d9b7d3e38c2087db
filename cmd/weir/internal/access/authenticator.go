package access

import (
	"fmt"
	"net/http"
	"strings"
)

// Authenticator guards one listener. A nil Authenticator admits every caller with all
// scopes. It is safe for concurrent use.
type Authenticator struct {
	// Keys holds the tokens. Nil: callers need none, and have all scopes. This
	// is for listeners on loopback, and for those that admit nobody without a
	// certificate.
	Keys *Keys

	// Hosts are the names of the service. Nil: any will do. See [Hosts].
	Hosts *Hosts

	// Reach says which holders are admitted, by the namespace that they are bound
	// to. Its zero value admits those that may use the namespace default.
	Reach Reach

	// Refused is called for each refusal, if it is not nil.
	Refused func(Reason)
}

// Proxied returns a for calls from proxies, which forward the Host of their
// clients: it accepts any.
func (a *Authenticator) Proxied() *Authenticator {
	if a == nil {
		return nil
	}
	p := *a
	p.Hosts = nil
	return &p
}

// everyone is the holder where no token is needed.
var everyone = &Holder{Scopes: All}

// Enter returns the caller of r if it may make a call that needs scopes. The
// error is a [*Refusal].
func (a *Authenticator) Enter(r *http.Request, need Scope) (*Holder, error) {
	if a == nil {
		return everyone, nil
	}
	h, no := a.enter(r, need)
	if no != nil {
		return nil, a.refuse(no)
	}
	return h, nil
}

func (a *Authenticator) enter(r *http.Request, need Scope) (*Holder, *Refusal) {
	if a.Hosts != nil && !a.Hosts.Has(r.Host) {
		return nil, &Refusal{
			Reason: Host,
			Detail: fmt.Sprintf("the request is for host %q, which is not a name of this service; add it to --hosts", r.Host),
		}
	}
	if a.Keys == nil {
		return everyone, nil
	}
	c := Credentials{Address: r.RemoteAddr}
	c.Token, c.Shown = Bearer(r.Header)
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		c.Certificate = r.TLS.VerifiedChains[0][0]
	}
	return a.admit(c, need)
}

// Foreign returns the [*Refusal] of a call from a web page of another origin.
func (a *Authenticator) Foreign() error {
	return a.refuse(&Refusal{Reason: Origin, Detail: "calls from web pages of another origin are refused"})
}

// May returns a [*Refusal] unless the holder has the scopes in need. A nil Holder
// has all.
func (h *Holder) May(need Scope) error {
	if err := h.lacks(need); err != nil {
		return err
	}
	return nil
}

// lacks returns the refusal of a call that needs scopes, or nil.
func (h *Holder) lacks(need Scope) *Refusal {
	if h == nil || h.Scopes.Has(need) {
		return nil
	}
	return &Refusal{
		Reason: NoScope,
		Detail: fmt.Sprintf("%s lacks scope %s; it has %s", h.Name, need&^h.Scopes, h.Scopes),
	}
}

// Bearer returns the token in the header Authorization, and whether there is
// one.
func Bearer(h http.Header) (token string, ok bool) {
	values := h["Authorization"]
	const scheme = "Bearer "
	if len(values) == 0 || len(values[0]) < len(scheme) || !strings.EqualFold(values[0][:len(scheme)], scheme) {
		return "", false
	}
	return strings.TrimSpace(values[0][len(scheme):]), true
}
