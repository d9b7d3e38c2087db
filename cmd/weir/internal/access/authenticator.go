package access

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/clientaddr"
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

// everyone is the holder without authentication.
var everyone = &Holder{Scopes: All}

// Authenticate returns the caller that shows c if it may make a call that needs scopes.
// The error is a [*Refusal].
func (a *Authenticator) Authenticate(c Credentials, need Scope) (*Holder, error) {
	if a != nil && a.Hosts != nil && !a.Hosts.Has(c.Host) {
		return nil, a.refuse(&Refusal{
			Reason: Host,
			Detail: fmt.Sprintf("the request is for host %q, which is not a name of this service; add it to --hosts", c.Host),
		})
	}
	if a == nil || a.Keys == nil {
		return c.admit(everyone), nil
	}
	h, no := a.Keys.Holder(c)
	if no == nil {
		no = a.Reach.refuses(h)
	}
	if no == nil {
		no = h.lacks(need)
	}
	if no != nil {
		return nil, a.refuse(no)
	}
	return c.admit(h), nil
}

// Knows returns the holder of the token or the certificate in c, or nil. Unlike [Authenticator.Authenticate] it checks nothing
// else and counts nothing.
func (a *Authenticator) Knows(c Credentials) *Holder {
	if a == nil || a.Keys == nil {
		return everyone
	}
	if c.Shown {
		return a.Keys.find(digestOf(c.Token))
	}
	h, _ := a.Keys.ofCertificate(c.Certificate)
	return h
}

// Foreign returns the [*Refusal] of a call from a web page of another origin.
func (a *Authenticator) Foreign() error {
	return a.refuse(&Refusal{Reason: Origin, Detail: "calls from web pages of another origin are refused"})
}

// CrossOrigin reports whether a web page of another origin makes the request, whatever its
// method: [http.CrossOriginProtection] accepts each GET, and some of ours count or are costly.
func CrossOrigin(r *http.Request) bool {
	if len(r.Header["Sec-Fetch-Site"]) == 0 && len(r.Header["Origin"]) == 0 {
		return false // only browsers send these
	}
	asked := *r
	asked.Method = http.MethodPost
	return http.NewCrossOriginProtection().Check(&asked) != nil
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

// Credentials are the credentials of a caller, over any protocol.
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

	// Host is the host that a call over HTTP is for. Empty: any.
	Host string

	// Conn is the connection of the call, or nil.
	Conn Conn
}

// Conn is a connection that gives way to those with an admitted caller.
type Conn interface {
	// Admit is called for each call whose caller is admitted.
	Admit(caller *Holder)
}

// ConnKey is the key of the [Conn] in the context of a call over HTTP.
type ConnKey struct{}

// admit tells the connection that h is admitted, and returns h.
func (c *Credentials) admit(h *Holder) *Holder {
	if c.Conn != nil {
		c.Conn.Admit(h)
	}
	return h
}

// CredentialsOf returns what the caller of r shows.
func CredentialsOf(r *http.Request) Credentials {
	c := Credentials{Address: r.RemoteAddr, Host: r.Host}
	c.Conn, _ = r.Context().Value(ConnKey{}).(Conn)
	c.Token, c.Shown = Bearer(r.Header["Authorization"])
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		c.Certificate = r.TLS.VerifiedChains[0][0]
	}
	return c
}

// Bearer returns the token in the values of the header Authorization, and whether there is
// one.
func Bearer(values []string) (token string, ok bool) {
	const scheme = "Bearer "
	if len(values) == 0 || len(values[0]) < len(scheme) || !strings.EqualFold(values[0][:len(scheme)], scheme) {
		return "", false
	}
	return strings.TrimSpace(values[0][len(scheme):]), true
}

// refuse counts a refusal, and returns it.
func (a *Authenticator) refuse(no *Refusal) error {
	if a != nil && a.Refused != nil {
		a.Refused(no.Reason)
	}
	return no
}

// DefaultNamespace is the namespace of calls that name none.
const DefaultNamespace = "default"

// Reach states which holders an authenticator admits, by the namespace that they are bound to.
type Reach uint8

const (
	// ReachDefault admits holders that may use the namespace default. It is for
	// front ends that know no other one.
	ReachDefault Reach = iota
	// ReachNamed admits all holders. It is for front ends that find the namespace of
	// each call with [Authenticator.Namespace].
	ReachNamed
	// ReachAll admits holders that may use all namespaces. It is for calls that
	// concern the whole service, such as metrics and profiles.
	ReachAll
)

// refuses returns the refusal of a holder that r does not admit, or nil.
func (r Reach) refuses(h *Holder) *Refusal {
	switch {
	case h.Namespace == "", r == ReachNamed:
		return nil
	case r == ReachAll:
		return &Refusal{
			Reason: Elsewhere,
			Detail: fmt.Sprintf("%s may use the namespace %s only; the call concerns all namespaces", h.Name, h.Namespace),
		}
	case h.Namespace == DefaultNamespace:
		return nil
	}
	return elsewhere(h, DefaultNamespace)
}

// Namespace returns the name of the namespace that a call of h is for. asked is the
// one that the call names, or empty: then it is the one that h is bound to, or
// [DefaultNamespace]. A holder that is bound to another namespace than the one
// asked for gets a [*Refusal]. A nil Holder may use all.
func (a *Authenticator) Namespace(h *Holder, asked string) (string, error) {
	switch {
	case h == nil || h.Namespace == "":
		if asked == "" {
			asked = DefaultNamespace
		}
		return asked, nil
	case asked == "" || asked == h.Namespace:
		return h.Namespace, nil
	}
	return "", a.refuse(elsewhere(h, asked))
}

func elsewhere(h *Holder, asked string) *Refusal {
	return &Refusal{
		Reason: Elsewhere,
		Detail: fmt.Sprintf("%s may use the namespace %s only, and the call is for %.64q", h.Name, h.Namespace, asked),
	}
}

// Reason is the reason of a refusal. It is a label of metrics.
type Reason string

// Reasons.
const (
	Missing   Reason = "missing"   // no token and no certificate that is known
	Unknown   Reason = "unknown"   // a token that is not in force
	Slowed    Reason = "slowed"    // too many wrong tokens from the address
	NoScope   Reason = "scope"     // the holder lacks a scope
	Elsewhere Reason = "namespace" // the holder belongs to another namespace
	Host      Reason = "host"      // the request names a host that is not this one
	Origin    Reason = "origin"    // the request comes from a web page of another origin
)

// Refusal is the error for a caller that lacks the permission for its call. Nothing
// was counted. It holds no secret.
type Refusal struct {
	Reason Reason

	// Detail states what is wrong and what to do.
	Detail string

	// RetryAfter is how long to wait before showing another token that may be wrong; 0
	// unless Reason is Slowed.
	RetryAfter time.Duration
}

func (r *Refusal) Error() string { return r.Detail }

// Hosts are the names under which callers reach the service. A web page can point
// its own name at a loopback address, and then call the service as if it were
// of the same origin; the header Host distinguishes such calls.
//
// IP addresses, localhost, names without a dot and an empty name always belong to
// Hosts: nobody can register a name without a dot.
type Hosts struct{ names map[string]bool }

// NewHosts returns Hosts with further names.
func NewHosts(names []string) *Hosts {
	h := &Hosts{names: map[string]bool{}}
	for _, n := range names {
		h.names[strings.ToLower(n)] = true
	}
	return h
}

// Has reports whether host, with or without a port, is one of h.
func (h *Hosts) Has(host string) bool {
	if _, err := netip.ParseAddrPort(host); err == nil {
		return true
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	name := strings.TrimSuffix(strings.ToLower(clientaddr.WithoutPort(host)), ".")
	return h.names[name] || !strings.Contains(name, ".") || strings.HasSuffix(name, ".localhost")
}
