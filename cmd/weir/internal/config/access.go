package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/internal/clientaddr"
)

// Access is the part of the configuration about authentication. The zero value is for listeners on
// loopback.
type Access struct {
	// Tokens is the path of the tokens file. Token is one more token, with all
	// scopes. With either, callers need a token, except on the listeners in
	// Insecure.
	Tokens, Token string

	// TLSCert and TLSKey are the paths of the certificate and the key of the
	// listeners with the scheme https. TLSClientCA is the path of the
	// authorities that sign the certificates of clients; with it, every client
	// of these listeners needs one.
	TLSCert, TLSKey, TLSClientCA string

	// Insecure lists listeners that anyone may reach without authentication, by name:
	// http, admin, grpc, resp, koala. The name all means every listener.
	Insecure []string

	// Hosts are names of the service. A listener on loopback without authentication
	// accepts only requests for these, for localhost, and for IP addresses.
	Hosts []string

	// Proxies are the networks of trusted proxies, of which the header that
	// /v1/gate reads ip from may have several.
	Proxies []string
}

// NeedsToken reports whether callers need a token.
func (a *Access) NeedsToken() bool { return a.Tokens != "" || a.Token != "" }

// Open reports whether a listener may be reached without authentication.
func (a *Access) Open(listener string) bool {
	return slices.Contains(a.Insecure, "all") || slices.Contains(a.Insecure, listener)
}

// Listeners returns the addresses of c by the names of their listeners, in the
// order in which they are opened. Addresses that [Config.Validate] reports are
// zero.
func (c *Config) Listeners() []Listener {
	all := []Listener{{Name: "http", Flag: "listen", text: c.Listen}, {Name: "admin", Flag: "admin", text: c.Admin}}
	if c.GRPCListen != "" {
		all = append(all, Listener{Name: "grpc", Flag: "grpc-listen", text: c.GRPCListen})
	}
	if c.RESPListen != "" {
		all = append(all, Listener{Name: "resp", Flag: "resp-listen", text: c.RESPListen, parse: ParseRESPAddress})
	}
	if addr := c.KoalaAddr(); addr != "" {
		all = append(all, Listener{Name: "koala", Flag: "koala-listen", text: addr})
	}
	if c.MetricsListen != "" {
		all = append(all, Listener{Name: "metrics", Flag: "metrics-listen", text: c.MetricsListen})
	}
	for i := range all {
		parse := all[i].parse
		if parse == nil {
			parse = ParseAddress
		}
		all[i].Address, all[i].err = parse(all[i].text)
	}
	return all
}

// Listener is one listener of the service.
type Listener struct {
	Name    string // in Insecure
	Flag    string // the flag of its address
	Address Address

	text  string
	parse func(text string) (Address, error) // nil: ParseAddress
	err   error
}

// InsecureNames returns what Insecure can contain.
func InsecureNames() []string {
	return []string{"http", "admin", "grpc", "resp", "koala", "metrics", "all"}
}

// Exposed returns a [fault.List] of the listeners that other machines can reach and that have no
// authentication: no tokens, no certificates of clients, and no permission in Insecure.
func (c *Config) Exposed() error {
	var faults fault.List
	for _, l := range c.Listeners() {
		switch {
		case l.err != nil, l.Address.Local(), c.Access.NeedsToken(), c.Access.Open(l.Name):
		case l.Address.TLS() && c.Access.TLSClientCA != "":
		default:
			faults.Addf(l.Flag, "%s: anyone who reaches this address can %s; %s, or --insecure=%s to serve without authentication",
				l.text, could[l.Name], suitable[l.Name], l.Name)
		}
	}
	return faults.Err()
}

// could has what anyone could do at each listener, and suitable the authentication that it
// accepts.
var (
	could = map[string]string{
		"http":  "count and forget",
		"admin": "reload the rules and read profiles",
		"grpc":  "count",
		"resp":  "count",
		"koala": "count",

		"metrics": "read metrics",
	}
	suitable = map[string]string{
		"http":  tokensOrTLS,
		"admin": tokensOrTLS,
		"grpc":  tokensOrTLS,
		"resp":  "use --tokens FILE or WEIR_TOKEN (weir token new makes a token), or rediss:// with --tls-client-ca FILE",
		"koala": "koala's clients send no tokens: listen on loopback, or use https:// with --tls-client-ca FILE",

		"metrics": tokensOrTLS,
	}
)

const tokensOrTLS = "use --tokens FILE or WEIR_TOKEN (weir token new makes a token), or https:// with --tls-client-ca FILE"

// access checks the fields about access.
func (f *faults) access(c *Config) {
	a := &c.Access
	if a.Token != "" {
		if err := access.CheckToken(a.Token); err != nil {
			f.Addf("WEIR_TOKEN", "%v", err)
		}
	}
	if _, err := clientaddr.NewProxies(a.Proxies); err != nil {
		f.Addf("trusted-proxies", "%v", err)
	}
	for _, name := range a.Insecure {
		f.oneOf("insecure", name, InsecureNames())
	}
	tls := ""
	for _, l := range c.Listeners() {
		if l.err == nil && l.Address.TLS() {
			tls = l.Flag
		}
	}
	switch {
	case (a.TLSCert == "") != (a.TLSKey == ""):
		f.Addf("tls-cert", "--tls-cert and --tls-key belong together: set both")
	case a.TLSCert == "" && tls != "":
		f.Addf(tls, "https needs --tls-cert FILE and --tls-key FILE")
	case a.TLSCert != "" && tls == "":
		f.Addf("tls-cert", "no listener uses it: write --listen https://%s", strings.TrimPrefix(c.Listen, "http://"))
	case a.TLSClientCA != "" && tls == "":
		f.Addf("tls-client-ca", "no listener uses it: it needs one with https://")
	}
	if err := c.Exposed(); err != nil {
		f.List = append(f.List, fault.Of(err)...)
	}
}

// String returns the address as users write it.
func (a Address) String() string {
	if a.Scheme == "unix" {
		return "unix:" + a.Host
	}
	return fmt.Sprintf("%s://%s", a.Scheme, a.Host)
}
