package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/store/redisstore/internal/wire"
)

// urlOptions are the options behind the ? of a URL. Each function reads a value.
var urlOptions = map[string]func(p *parser, name, value string){
	"db":            func(p *parser, _, v string) { p.database(v) },
	"prefix":        textOption(func(p *parser) *string { return &p.config.prefix }),
	"client_name":   textOption(func(p *parser) *string { return &p.config.clientName }),
	"password_file": func(p *parser, _, v string) { p.passwordFile(v) },
	"in_flight":     numberOption(func(p *parser) *int { return &p.config.inFlight }),
	"wait_replicas": numberOption(func(p *parser) *int { return &p.config.waitReplicas }),
	"timeout": func(p *parser, name, v string) {
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			p.fault(name, "%q: want a time such as 50ms", v)
			return
		}
		p.config.Timeout = d
	},

	"sentinel_username": textOption(func(p *parser) *string { return &p.config.sentinelUsername }),
	"sentinel_password": textOption(func(p *parser) *string { return &p.config.sentinelPassword }),

	"ca":          textOption(func(p *parser) *string { return &p.tls.ca }),
	"cert":        textOption(func(p *parser) *string { return &p.tls.cert }),
	"key":         textOption(func(p *parser) *string { return &p.tls.key }),
	"server_name": textOption(func(p *parser) *string { return &p.tls.serverName }),
}

func textOption(field func(*parser) *string) func(*parser, string, string) {
	return func(p *parser, name, v string) {
		if v == "" {
			p.fault(name, "empty: leave it out for its default")
		}
		*field(p) = v
	}
}

func numberOption(field func(*parser) *int) func(*parser, string, string) {
	return func(p *parser, name, v string) {
		n, err := strconv.ParseUint(v, 10, 31)
		if err != nil {
			p.fault(name, "%q: want a whole number", v)
		}
		*field(p) = int(n)
	}
}

func (p *parser) options(query string) {
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, escaped, _ := strings.Cut(pair, "=")
		read, known := urlOptions[name]
		value, err := url.QueryUnescape(escaped)
		switch {
		case !known:
			names := slices.Sorted(maps.Keys(urlOptions))
			p.fault("", "option %q: want one of %s%s", name, strings.Join(names, ", "), fault.DidYouMean(name, names))
		case seen[name]:
			p.fault(name, "given twice")
		case err != nil:
			p.fault(name, "a %% that no two hex digits follow: write it as %%25")
		default:
			read(p, name, value)
		}
		seen[name] = true
	}
	if p.config.mode != wire.Sentinel {
		for _, name := range []string{"sentinel_username", "sentinel_password"} {
			if seen[name] {
				p.fault(name, "only with redis+sentinel://")
			}
		}
	}
}

// tlsOptions are the names of PEM files, and of the server.
type tlsOptions struct {
	on                        bool
	ca, cert, key, serverName string
}

func (o *tlsOptions) config(p *parser) *tls.Config {
	if !o.on {
		if *o != (tlsOptions{}) {
			p.fault("", "ca, cert, key, server_name: only with TLS, which rediss:// asks for")
		}
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.serverName}
	if o.ca != "" {
		pem, err := os.ReadFile(o.ca)
		config.RootCAs = x509.NewCertPool()
		switch {
		case err != nil:
			p.fault("ca", "%v", err)
		case !config.RootCAs.AppendCertsFromPEM(pem):
			p.fault("ca", "%s: no PEM certificate in it", o.ca)
		}
	}
	switch {
	case (o.cert == "") != (o.key == ""):
		p.fault("", "cert and key: want both or none")
	case o.cert != "":
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			p.fault("", "cert and key: %v", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}
