package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/store/redisstore/internal/conn"
)

// Parse reads a configuration from a URL:
//
//	redis://user:password@host:6379/0?prefix=weir
//	rediss://host:6380?ca=ca.pem&cert=client.pem&key=client.key
//	redis+sentinel://host1:26379,host2:26379/mymaster?db=1
//	redis+cluster://host1:6379,host2:6379
//	unix:///run/redis/redis.sock?db=1
//
// The schemes rediss, rediss+sentinel and rediss+cluster use TLS 1.2 or later. The
// path is the database, or with Sentinels the name of the primary. The default
// port is 6379, and 26379 for Sentinels.
//
// The options prefix, db, client_name, timeout (such as 20ms), in_flight,
// wait_replicas, sentinel_username and sentinel_password are explained in docs/guides/redis.md.
// password_file names a file with the password; an empty password is none. With
// TLS, ca names a PEM file of the authorities to trust, cert and key name the PEM
// files of the client's certificate, and server_name is the name that the
// server's certificate must have.
//
// The error names every fault and repeats no password.
func Parse(rawURL string) (Config, error) {
	p := parser{}
	p.read(rawURL)
	c := p.config.withDefaults()
	if len(c.Addrs) > 0 {
		p.faults = append(p.faults, c.validate()...)
	}
	if err := p.faults.Err(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// parser reads one URL. It does not use url.Parse, which allows one host only and
// repeats the whole URL in its errors, with the password.
type parser struct {
	config Config
	faults fault.List
	tls    tlsOptions
}

// fault notes that part of the URL is wrong; an empty part stands for all of
// it.
func (p *parser) fault(part, format string, args ...any) {
	p.faults = append(p.faults, fault.Newf(part, format, args...).In("store"))
}

// schemes are the schemes of URLs; with TLS redis is spelled rediss.
var schemes = []string{
	"redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster", "unix",
}

func (p *parser) read(rawURL string) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok || !slices.Contains(schemes, scheme) {
		// Not repeated: what has no good scheme may be a password too.
		p.fault("scheme", "want one of %s%s", strings.Join(schemes, ", "), fault.DidYouMean(scheme, schemes))
		return
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	if strings.Contains(path, "@") || strings.Contains(query, "@") {
		// The password may have a / or a ?, and everything is out of place.
		p.fault("", "@ after the hosts: in a user or password write / as %%2F, ? as %%3F, @ as %%40")
		return
	}
	switch {
	case strings.HasSuffix(scheme, "+sentinel"):
		p.config.rest.Mode = conn.Sentinel
	case strings.HasSuffix(scheme, "+cluster"):
		p.config.rest.Mode = conn.Cluster
	}
	p.tls.on = strings.HasPrefix(scheme, "rediss")
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		p.login(authority[:at])
		authority = authority[at+1:]
	}
	if scheme == "unix" {
		p.socket(authority, path)
	} else {
		p.hosts(authority)
		p.path(path)
	}
	p.options(query)
	p.config.TLS = p.tls.config(p)
}

func (p *parser) login(userinfo string) {
	user, password, _ := strings.Cut(userinfo, ":")
	var err1, err2 error
	p.config.rest.Username, err1 = url.PathUnescape(user)
	p.config.rest.Password, err2 = url.PathUnescape(password)
	if err1 != nil || err2 != nil {
		p.fault("", "user or password: a %% that no two hex digits follow: write it as %%25")
	}
}

func (p *parser) socket(authority, path string) {
	file, err := url.PathUnescape(path)
	if authority != "" || file == "" || err != nil {
		p.fault("", "want unix:///path/to/redis.sock")
		return
	}
	p.config.Addrs = []string{"/" + file}
}

func (p *parser) hosts(authority string) {
	port := "6379"
	if p.config.rest.Mode == conn.Sentinel {
		port = "26379"
	}
	for i, host := range strings.Split(authority, ",") {
		if addr, ok := address(host, port); ok {
			p.config.Addrs = append(p.config.Addrs, addr)
		} else {
			// Not repeated: it may be a password whose host is missing.
			p.fault("", "host %d: want host or host:port, and [address]:port for IPv6", i+1)
		}
	}
}

// address returns host with its port, or with the usual one.
func address(host, port string) (addr string, ok bool) {
	switch {
	case strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]"):
		host = host[1 : len(host)-1]
	case strings.LastIndexByte(host, ':') >= 0:
		var err error
		if host, port, err = net.SplitHostPort(host); err != nil {
			return "", false
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", false
	}
	bad := func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`/?#@[]%\"<>{}|^`+"`", r) }
	if host == "" || strings.ContainsFunc(host, bad) {
		return "", false
	}
	return net.JoinHostPort(host, port), true
}

// path reads the name of the primary, or the database.
func (p *parser) path(path string) {
	switch {
	case p.config.rest.Mode == conn.Sentinel:
		name, err := url.PathUnescape(path)
		if err != nil || strings.ContainsAny(name, "/ ") {
			p.fault("", "name of the primary %q: want one word", path)
		}
		p.config.rest.Primary = name
	case path != "":
		p.database(path)
	}
}

func (p *parser) database(text string) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		p.fault("db", "%q: want a number from 0", text)
	}
	p.config.rest.DB = int(n)
}

// passwordFile reads a password from a file. Other users of the machine can see a
// URL in the list of processes.
func (p *parser) passwordFile(name string) {
	b, err := os.ReadFile(name)
	if err != nil {
		p.fault("password_file", "%v", err)
		return
	}
	p.config.rest.Password = strings.TrimRight(string(b), "\r\n")
}

// options reads the options after the ? of the URL.
func (p *parser) options(query string) {
	c, t := &p.config, &p.tls
	options := map[string]any{ // where the value goes, or who reads it
		"prefix": &c.prefix, "client_name": &c.rest.ClientName, "in_flight": &c.rest.InFlight, "wait_replicas": &c.rest.WaitReplicas,
		"sentinel_username": &c.rest.SentinelUsername, "sentinel_password": &c.rest.SentinelPassword,
		"ca": &t.ca, "cert": &t.cert, "key": &t.key, "server_name": &t.serverName,
		"db": p.database, "password_file": p.passwordFile, "timeout": p.timeout,
	}
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, escaped, _ := strings.Cut(pair, "=")
		value, err := url.QueryUnescape(escaped)
		to, known := options[name]
		faults := len(p.faults)
		switch {
		case !known:
			names := slices.Sorted(maps.Keys(options))
			p.fault("", "option %q: want one of %s%s", name, strings.Join(names, ", "), fault.DidYouMean(name, names))
		case seen[name]:
			p.fault(name, "given twice")
		case err != nil:
			p.fault(name, "a %% that no two hex digits follow: write it as %%25")
		case c.rest.Mode != conn.Sentinel && strings.HasPrefix(name, "sentinel_"):
			p.fault(name, "only with redis+sentinel://")
		}
		seen[name] = true
		if len(p.faults) > faults {
			continue
		}
		switch to := to.(type) {
		case *string:
			if value == "" {
				p.fault(name, "empty: leave it out for its default")
			}
			*to = value
		case *int:
			n, err := strconv.ParseUint(value, 10, 31)
			if err != nil {
				p.fault(name, "%q: want a whole number", value)
			}
			*to = int(n)
		case func(string):
			to(value)
		}
	}
}

func (p *parser) timeout(text string) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		p.fault("timeout", "%q: want a time such as 50ms", text)
		return
	}
	p.config.Timeout = d
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
