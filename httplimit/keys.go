package httplimit

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/weirhq/weir/guard"
	"github.com/weirhq/weir/internal/clientaddr"
)

// PeerIP returns the address from which the connection comes, as a key for [Keys]. An IPv6 address counts
// by its first 64 bits, because one client has all addresses that share them. Behind a
// proxy this is the proxy's address: use [ForwardedIP] there. Connections over a Unix
// socket have no address, so that their requests have no key.
func PeerIP(r *http.Request) string { return guard.AddressKey(r.RemoteAddr) }

// ForwardedIP returns a function that returns a key: the client's address behind proxies. It is the last
// address in X-Forwarded-For that is not in the trusted networks, which are addresses
// or CIDR blocks of the proxies. If the connection does not come from one of these,
// the header may be forged, and the address of the connection counts. An IPv6
// address counts by its first 64 bits. At least one network is required.
func ForwardedIP(trusted ...string) (func(*http.Request) string, error) {
	proxies, err := clientaddr.NewProxies(trusted)
	if err != nil {
		return nil, fmt.Errorf("httplimit: trusted: %w", err)
	}
	if proxies == nil {
		return nil, errors.New("httplimit: trusted: no networks: want those of the proxies, such as 10.0.0.0/8")
	}
	return func(r *http.Request) string {
		group, _ := clientaddr.Group(proxies.Client(r.RemoteAddr, r.Header["X-Forwarded-For"]))
		return group
	}, nil
}

// Header returns a function that returns a key: the value of a header, such as that of an API key. A request
// without it is an error. Anyone can send any value: verify it before, or limit by
// address, too.
func Header(name string) func(*http.Request) string {
	name = http.CanonicalHeaderKey(name)
	return func(r *http.Request) string {
		if values := r.Header[name]; len(values) > 0 {
			return values[0]
		}
		return ""
	}
}
