package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/files"
	"github.com/weirhq/weir/internal/clientaddr"
	"github.com/weirhq/weir/rule"
)

// Keys holds the tokens and the names of certificates that are in force. Make one
// with [OpenKeys]. It is safe for concurrent use.
type Keys struct {
	path  string
	own   []entry // from the environment, not from the file
	seed  maphash.Seed
	ring  atomic.Pointer[ring]
	tried attempt       // of the file
	fault error         // of that attempt
	wrong *weir.Limiter // wrong tokens, by address

	// Slow is called when an address has shown so many wrong tokens that it is told
	// to wait. It must be set before the first call.
	Slow func(address string)
}

// ring is one state of the tokens. It is immutable.
type ring struct {
	tokens map[uint64][]entry // by a hash of their digests that callers cannot compute
	certs  map[string]*Holder
	size   int
}

// WrongTokens and WrongWindow bound the wrong tokens of one address that are answered as
// such: WrongTokens in any WrongWindow. The others are told to wait.
const (
	WrongTokens = 10
	WrongWindow = time.Minute

	wrongAddresses = 100_000 // that are remembered
)

// Own is a token that is not in the tokens file.
type Own struct {
	Name   string
	Token  string
	Scopes Scope
}

// OpenKeys reads the tokens file at path, if any. The tokens in own stay in force
// for good; one that is also in the file has the scopes of its line. There must be at
// least one token.
func OpenKeys(path string, own ...Own) (*Keys, error) {
	// Once the table of addresses is full, further addresses are not slowed.
	wrong, err := weir.NewLimiter(weir.Sliding(WrongTokens, WrongWindow),
		weir.WithMaxKeys(wrongAddresses), weir.WithOutage(rule.OutageAllow))
	if err != nil {
		return nil, err
	}
	k := &Keys{path: path, seed: maphash.MakeSeed(), wrong: wrong}
	for _, o := range own {
		k.own = append(k.own, entry{holder: &Holder{Name: o.Name, Scopes: o.Scopes}, digest: digestOf(o.Token)})
	}
	_, err = k.Reload()
	return k, err
}

// Close frees the memory of wrong tokens.
func (k *Keys) Close() error { return k.wrong.Close() }

// Len returns the number of tokens and certificates in force.
func (k *Keys) Len() int { return k.ring.Load().size }

// Reload reads the tokens file again, and reports whether it differs from what
// was read last. If the file has a fault, the tokens in force stay, and the fault is
// returned as long as the file has it. Reload must not be called concurrently.
func (k *Keys) Reload() (changed bool, err error) {
	defer func() { k.fault = err }()
	entries := k.own
	if k.path != "" {
		src, err := files.Read(k.path, MaxFile)
		if k.tried.same(err, src) {
			return false, k.fault
		}
		if err != nil {
			return true, err
		}
		read, err := parseFile(k.path, src)
		if err != nil {
			return true, err
		}
		if len(read) == 0 {
			return true, fmt.Errorf("%s: holds no token; weir token new adds one", k.path)
		}
		entries = append(entries[:len(entries):len(entries)], read...)
	}
	if len(entries) == 0 {
		return false, errors.New("no tokens")
	}
	k.replace(entries)
	return true, nil
}

// replace puts entries in force.
func (k *Keys) replace(entries []entry) {
	next := &ring{tokens: map[uint64][]entry{}, certs: map[string]*Holder{}, size: len(entries)}
	for _, e := range entries {
		if e.cert != "" {
			next.certs[e.cert] = e.holder
			continue
		}
		at := maphash.Bytes(k.seed, e.digest[:])
		next.tokens[at] = append(next.tokens[at], e)
	}
	k.ring.Store(next)
}

// find returns the holder of the token with a digest, or nil. Its time does not
// depend on how much of the digest is right.
func (k *Keys) find(d digest) (found *Holder) {
	for _, e := range k.ring.Load().tokens[maphash.Bytes(k.seed, d[:])] {
		if subtle.ConstantTimeCompare(e.digest[:], d[:]) == 1 {
			found = e.holder
		}
	}
	return found
}

// Holder returns the holder of c: of the token or, without one, of the first name
// of the certificate that is in the tokens file. An address that has shown too many wrong
// tokens is told to wait. A right token is accepted from any address at any time, because many
// callers may share an address, such as that of a proxy.
func (k *Keys) Holder(c Credentials) (*Holder, *Refusal) {
	if !c.Shown {
		return k.ofCertificate(c.Certificate)
	}
	if h := k.find(digestOf(c.Token)); h != nil {
		return h, nil
	}
	host := clientaddr.WithoutPort(c.Address)
	group, ok := clientaddr.Group(host)
	if !ok {
		group = host // text that is not an address is its own group
	}
	seen, err := k.wrong.Allow(context.Background(), group)
	switch {
	case err != nil || !seen.Allowed:
		return nil, slowed(seen.RetryAfter)
	case seen.Remaining == 0 && !seen.Degraded && k.Slow != nil:
		k.Slow(group)
	}
	return nil, &Refusal{Reason: Unknown, Detail: "the token is not known"}
}

// ofCertificate returns the holder of a client's certificate, which was verified, or is nil.
func (k *Keys) ofCertificate(c *x509.Certificate) (*Holder, *Refusal) {
	if c == nil {
		return nil, &Refusal{Reason: Missing, Detail: "the call needs a token: send Authorization: Bearer TOKEN"}
	}
	certs, names := k.ring.Load().certs, certificateNames(c)
	for _, name := range names {
		if h := certs[name]; h != nil {
			return h, nil
		}
	}
	detail := "the certificate has no name that a tokens file can have, and there is no token"
	if len(names) > 0 {
		detail = fmt.Sprintf("no name of the certificate (%s) is in the tokens file, and there is no token", strings.Join(names, ", "))
	}
	return nil, &Refusal{Reason: Missing, Detail: detail}
}

// slowed returns the refusal of an address that has shown too many wrong tokens.
func slowed(wait time.Duration) *Refusal {
	return &Refusal{
		Reason:     Slowed,
		Detail:     fmt.Sprintf("more than %d wrong tokens in %v from this address", WrongTokens, WrongWindow),
		RetryAfter: max(wait, time.Second),
	}
}

// certificateNames returns the names in c that a tokens file can contain: host names, URIs and mail addresses, or
// the common name if c has no alternative names at all, because an authority that verifies these may not verify the
// common name.
func certificateNames(c *x509.Certificate) []string {
	names := append([]string(nil), c.DNSNames...)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	names = append(names, c.EmailAddresses...)
	alternative := func(e pkix.Extension) bool { return e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 17}) }
	if c.Subject.CommonName != "" && !slices.ContainsFunc(c.Extensions, alternative) {
		names = []string{c.Subject.CommonName}
	}
	return names
}

// Holder is a caller that has shown a token or a certificate. A Holder is
// immutable, and safe for concurrent use.
type Holder struct {
	// Name is the name in the tokens file, or the source of the token.
	Name string

	// Scopes are the scopes of the holder.
	Scopes Scope

	// Namespace is the only namespace that the holder may use. Empty: it may use
	// all.
	Namespace string
}

// Share names those with whom h shares its part of [Places]: all who are bound to a namespace together, and the holder of
// another token alone. It is empty for who has the scope admin in all namespaces, and without authentication.
func (h *Holder) Share() string {
	switch {
	case h == nil, h.Namespace == "" && h.Scopes&Admin == Admin:
		return ""
	case h.Namespace == "":
		return "token " + h.Name // which no namespace is named
	}
	return h.Namespace
}

// Token returns the name of the token of h, or "" without authentication.
func (h *Holder) Token() string {
	if h == nil {
		return ""
	}
	return h.Name
}

// attempt is what the last attempt to read some files has read.
type attempt [sha256.Size]byte

// same reports whether err and contents are those of the last attempt, and
// remembers them.
func (a *attempt) same(err error, contents ...[]byte) bool {
	h := sha256.New()
	if err != nil {
		h.Write([]byte("error " + err.Error()))
	} else {
		for _, c := range contents {
			sum := sha256.Sum256(c)
			h.Write(sum[:])
		}
	}
	next := attempt(h.Sum(nil))
	same := next == *a
	*a = next
	return same
}
