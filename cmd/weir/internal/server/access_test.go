package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
)

const takePost = `{"attributes":{"action":"post","user":"42"}}`

// ask makes a call with a token, over a transport.
func ask(t *testing.T, via http.RoundTripper, method, url, token, body string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Client{Transport: via}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: resp.StatusCode, text: resp.Proto + " " + string(b)}
}

// A service with tokens answers health checks only, until a caller shows one. A
// token is revoked as soon as it is gone from the file.
func TestTokens(t *testing.T) {
	t.Parallel()
	shop, ops := access.NewToken(), access.NewToken()
	file := filepath.Join(t.TempDir(), "tokens")
	both := access.Line("shop", shop, access.Decide, "") + "\n" + access.Line("ops", ops, access.Admin|access.Read, "") + "\n"
	write(t, file, both)
	s := start(t, func(c *config.Config) { c.Access.Tokens = file })
	for _, tc := range []struct {
		method, url, token string
		want               int
	}{
		{"POST", s.api + "/v1/take", "", 401},
		{"POST", s.api + "/v1/take", "weir_wrong", 401},
		{"POST", s.api + "/v1/take", ops, 403},
		{"POST", s.api + "/v1/take", shop, 200},
		{"GET", s.api + "/v1/nothing", "", 404},
		{"GET", s.api + "/healthz", "", 200},
		{"GET", s.api + "/readyz", "", 200},
		{"GET", s.admin + "/healthz", "", 200},
		{"GET", s.admin + "/metrics", "", 401},
		{"GET", s.admin + "/metrics", shop, 403},
		{"GET", s.admin + "/metrics", ops, 200},
		{"GET", s.admin + "/debug/pprof/", "", 401},
		{"GET", s.admin + "/debug/pprof/heap", shop, 403},
		{"GET", s.admin + "/debug/pprof/heap", ops, 200},
		{"POST", s.admin + "/-/reload", shop, 403},
		{"POST", s.admin + "/-/reload", ops, 409},
	} {
		if a := ask(t, http.DefaultTransport, tc.method, tc.url, tc.token, takePost); a.status != tc.want {
			t.Errorf("%s %s: got %d %s, want %d", tc.method, tc.url, a.status, a.text, tc.want)
		}
	}
	if a := ask(t, http.DefaultTransport, "GET", s.admin+"/metrics", ops, ""); !strings.Contains(a.text, `weir_access_refused_total{listener="http",reason="unknown"} 1`) ||
		!strings.Contains(a.text, "weir_access_tokens 2\n") {
		t.Errorf("got no numbers of refused calls and of tokens in\n%s", a.text)
	}

	write(t, file, access.Line("ops", ops, access.Admin|access.Read, "")+"\n")
	s.logs.await(t, 1, `msg="tokens loaded"`)
	if a := ask(t, http.DefaultTransport, "POST", s.api+"/v1/take", shop, takePost); a.status != 401 {
		t.Errorf("a revoked token: got %d, want 401", a.status)
	}
	write(t, file, "ops "+ops+"\n") // the secret instead of its hash
	s.logs.await(t, 1, `msg="tokens refused; what was in force stays"`)
	if a := ask(t, http.DefaultTransport, "GET", s.admin+"/metrics", ops, ""); !strings.Contains(a.text, `weir_access_reload_success{what="tokens"} 0`) {
		t.Errorf("got no sign of a refused file in the metrics")
	}
	for range access.WrongTokens {
		ask(t, http.DefaultTransport, "POST", s.api+"/v1/take", "weir_wrong", takePost)
	}
	if a := ask(t, http.DefaultTransport, "POST", s.api+"/v1/take", "weir_wrong", takePost); a.status != 429 {
		t.Errorf("too many wrong tokens: got %d, want 429", a.status)
	}
	s.logs.await(t, 1, "wrong tokens: the address must wait")
	s.logs.mu.Lock()
	defer s.logs.mu.Unlock()
	for _, secret := range []string{shop, ops, "weir_wrong"} {
		if strings.Contains(s.logs.text.String(), secret) {
			t.Errorf("got a secret in the log")
		}
	}
}

// Without authentication, a service on loopback refuses what a web page sends.
func TestBrowsersAreRefused(t *testing.T) {
	t.Parallel()
	s := startKoala(t, koalaHome(t), func(c *config.Config) { c.Access.Hosts = []string{"weir.example"} })
	koala := "http://" + s.addr + "/rule/"
	for _, tc := range []struct {
		method, url, header, value string
		want                       int
	}{
		{"POST", s.admin + "/-/reload", "", "", 200},
		{"POST", s.admin + "/-/reload", "Origin", "https://evil.example", 403},
		{"POST", s.admin + "/-/reload", "Sec-Fetch-Site", "cross-site", 403},
		{"GET", s.admin + "/debug/pprof/heap", "Sec-Fetch-Site", "cross-site", 403},
		{"GET", s.admin + "/debug/pprof/heap", "Host", "evil.example:8081", 403},
		{"GET", s.admin + "/metrics", "Host", "evil.example", 403},
		{"GET", s.admin + "/metrics", "Origin", "https://evil.example", 403},
		{"GET", s.admin + "/metrics", "Sec-Fetch-Site", "same-site", 403}, // another port of this machine
		{"GET", s.admin + "/metrics", "Sec-Fetch-Site", "same-origin", 200},
		{"GET", s.admin + "/metrics", "Host", "weir.example:8081", 200},
		{"GET", s.admin + "/healthz", "Host", "evil.example", 200},
		{"POST", s.api + "/v1/take", "Host", "evil.example", 403},
		{"POST", s.api + "/v1/take", "Host", "localhost:8080", 200},
		{"GET", s.api + "/v1/top", "Origin", "https://evil.example", 403},
		{"GET", s.api + "/v1/top", "Sec-Fetch-Site", "cross-site", 403},
		{"GET", koala + "update?act=post", "", "", 200},
		{"GET", koala + "update?act=post", "Origin", "https://evil.example", 403},
		{"GET", koala + "update?act=post", "Sec-Fetch-Site", "cross-site", 403},
		{"GET", koala + "update?act=post", "Sec-Fetch-Site", "same-site", 403},
		{"GET", koala + "update?act=post", "Sec-Fetch-Site", "none", 200}, // typed by a user
		{"GET", koala + "update?act=post", "Host", "evil.example", 403},
		{"GET", "http://" + s.addr + "/monitor/alive", "Origin", "https://evil.example", 200},
		{"GET", s.api + "/v1/gate?action=x", "Host", "shop.example", 200}, // a proxy forwards its client's
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, tc.url, strings.NewReader(takePost))
		if err != nil {
			t.Fatal(err)
		}
		if tc.header == "Host" {
			req.Host = tc.value
		} else if tc.header != "" {
			req.Header.Set(tc.header, tc.value)
			req.Header.Set("Sec-Fetch-Mode", "navigate") // as of a link or a frame
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tc.want {
			t.Errorf("%s %s with %s: %s: got %d, want %d", tc.method, tc.url, tc.header, tc.value, resp.StatusCode, tc.want)
		}
	}
}

// authority signs certificates.
type authority struct {
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.key = newKey(t)
	a.cert = a.sign(t, "ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, a.key)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign writes NAME.pem and NAME.key.
func (a *authority) sign(t *testing.T, name string, c *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.Subject = serial, pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent := a.cert
	if parent == nil {
		parent = c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, a.path(name+".key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	write(t, a.path(name+".pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// server signs a certificate for the loopback address.
func (a *authority) server(t *testing.T) *x509.Certificate {
	t.Helper()
	return a.sign(t, "server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, newKey(t))
}

// via returns a transport that trusts a, and shows the certificate with a name,
// if any. Each call has a separate connection.
func (a *authority) via(t *testing.T, name string, http2 bool) *http.Transport {
	t.Helper()
	cfg := &tls.Config{RootCAs: x509.NewCertPool()}
	cfg.RootCAs.AddCert(a.cert)
	if name != "" {
		pair, err := tls.LoadX509KeyPair(a.path(name+".pem"), a.path(name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	via := &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: http2}
	t.Cleanup(via.CloseIdleConnections)
	return via
}

// TLS on every listener; the certificate is read again when it changes.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	ca.server(t)
	s := startKoala(t, koalaHome(t), func(c *config.Config) {
		c.Listen, c.Admin, c.KoalaListen = "https://127.0.0.1:0", "https://127.0.0.1:0", "https://127.0.0.1:0"
		c.Access.TLSCert, c.Access.TLSKey = ca.path("server.pem"), ca.path("server.key")
	})
	serial := func() string {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.api, "https://"), ca.via(t, "", false).TLSClientConfig)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	for url, want := range map[string]string{
		s.api + "/healthz":                                "HTTP/2.0 ok\n",
		s.admin + "/healthz":                              "HTTP/2.0 ok\n",
		"https://" + s.addr + "/monitor/alive":            `HTTP/1.1 {"errno": 0, "errmsg": "OK!"}`,
		"https://" + s.addr + "/rule/browse?act=mall&a=b": "HTTP/1.1 {",
	} {
		if a := ask(t, ca.via(t, "", true), "GET", url, "", ""); a.status != 200 || !strings.HasPrefix(a.text, want) {
			t.Errorf("%s: got %d %s, want %s", url, a.status, a.text, want)
		}
	}
	old := serial()
	write(t, ca.path("server.pem"), "no certificate")
	s.logs.await(t, 1, "certificate refused; what was in force stays")
	if got := serial(); got != old {
		t.Errorf("got certificate %s, want %s, which was in force", got, old)
	}
	next := ca.server(t).SerialNumber.String()
	s.logs.await(t, 1, `msg="certificate loaded"`)
	if got := serial(); got != next {
		t.Errorf("got certificate %s, want the new one, %s", got, next)
	}
}

// A client's certificate is enough by itself. With a tokens file, its name has
// scopes.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	ca.server(t)
	for _, name := range []string{"shop", "guest"} {
		ca.sign(t, name, &x509.Certificate{DNSNames: []string{name + ".example"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, newKey(t))
	}
	// Both have a common name that is in the tokens file; only that of plain counts, which has no SANs.
	ca.sign(t, "plain", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, newKey(t))
	ca.sign(t, "host", &x509.Certificate{IPAddresses: []net.IP{{127, 0, 0, 9}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, newKey(t))
	other.sign(t, "shop", &x509.Certificate{DNSNames: []string{"shop.example"}}, newKey(t))
	locked := func(c *config.Config) {
		c.Listen = "https://0.0.0.0:0" // strangers may reach it
		c.Access.TLSCert, c.Access.TLSKey, c.Access.TLSClientCA = ca.path("server.pem"), ca.path("server.key"), ca.path("ca.pem")
	}
	at := func(s *service) string {
		u, err := url.Parse(s.api)
		if err != nil {
			t.Fatal(err)
		}
		return "https://127.0.0.1:" + u.Port() + "/v1/take"
	}
	s := start(t, locked)
	if a := ask(t, ca.via(t, "guest", true), "POST", at(s), "", takePost); a.status != 200 {
		t.Errorf("got %d %s, want 200: every certificate is good", a.status, a.text)
	}
	foreign := ca.via(t, "", true)
	pair, err := tls.LoadX509KeyPair(other.path("shop.pem"), other.path("shop.key"))
	if err != nil {
		t.Fatal(err)
	}
	foreign.TLSClientConfig.Certificates = []tls.Certificate{pair}
	for name, via := range map[string]*http.Transport{"none": ca.via(t, "", true), "of another authority": foreign} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at(s), strings.NewReader(takePost))
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := via.RoundTrip(req); err == nil {
			resp.Body.Close()
			t.Errorf("certificate %s: got %d, want no connection", name, resp.StatusCode)
		}
	}

	token := access.NewToken()
	file := filepath.Join(t.TempDir(), "tokens")
	write(t, file, "shop cert:shop.example scopes=decide\nplain cert:plain scopes=decide\nhost cert:host scopes=decide\n"+access.Line("reader", token, access.Read, "")+"\n")
	s = start(t, func(c *config.Config) { locked(c); c.Access.Tokens = file })
	for _, tc := range []struct {
		cert, token string
		want        int
		text        string
	}{
		{"shop", "", 200, `"allowed":true`},
		{"guest", "", 401, "no name of the certificate (guest.example) is in the tokens file, and there is no token"},
		{"plain", "", 200, `"allowed":true`},
		{"host", "", 401, "the certificate has no name that a tokens file can have"},
		{"shop", token, 403, "reader lacks scope decide"}, // a token goes before the certificate
	} {
		if a := ask(t, ca.via(t, tc.cert, true), "POST", at(s), tc.token, takePost); a.status != tc.want || !strings.Contains(a.text, tc.text) {
			t.Errorf("%s: got %d %s, want %d %s", tc.cert, a.status, a.text, tc.want, tc.text)
		}
	}

	k := startKoala(t, koalaHome(t), func(c *config.Config) {
		locked(c)
		c.Access.Tokens, c.KoalaListen = file, "https://127.0.0.1:0"
	})
	for cert, want := range map[string]int{"shop": 200, "guest": 403} {
		if a := ask(t, ca.via(t, cert, true), "GET", "https://"+k.addr+"/rule/browse?act=post&uid=1", "", ""); a.status != want {
			t.Errorf("%s at koala's address: got %d %s, want %d", cert, a.status, a.text, want)
		}
	}
}

// A Unix socket needs no port, and the next start takes over the socket of a
// process that was killed.
func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	left.Close()
	s := start(t, func(c *config.Config) { c.Listen = "unix:" + path })
	if s.api != "unix:"+path {
		t.Errorf("got address %s, want the socket", s.api)
	}
	via := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	t.Cleanup(via.CloseIdleConnections)
	if a := ask(t, via, "POST", "http://weir/v1/take", "", takePost); a.status != 200 {
		t.Errorf("got %d %s, want 200", a.status, a.text)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("got %v %v, want a socket for the user and the group", info.Mode(), err)
	}
	via.CloseIdleConnections()
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is still there after the end")
	}
}

// At its end a process leaves the socket of its successor alone, which has replaced its own.
func TestUnixSocketReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.sock")
	s := start(t, func(c *config.Config) { c.Listen = "unix:" + path })
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	start(t, func(c *config.Config) { c.Listen = "unix:" + path })
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("got %v, want the successor to listen on", err)
	}
	conn.Close()
}

func TestH2C(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *config.Config) { c.Listen = "h2c://127.0.0.1:0" })
	for proto, want := range map[string]func(*http.Protocols){
		"HTTP/2.0": func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) },
		"HTTP/1.1": func(p *http.Protocols) { p.SetHTTP1(true) },
	} {
		via := &http.Transport{Protocols: new(http.Protocols)}
		want(via.Protocols)
		t.Cleanup(via.CloseIdleConnections)
		if a := ask(t, via, "POST", s.api+"/v1/take", "", takePost); a.status != 200 || !strings.HasPrefix(a.text, proto) {
			t.Errorf("got %d %s, want %s", a.status, a.text, proto)
		}
	}
}

// koala's calls take tokens of the file, and need none where the listener is insecure.
func TestKoalaTokens(t *testing.T) {
	t.Parallel()
	shop := access.NewToken()
	file := filepath.Join(t.TempDir(), "tokens")
	write(t, file, access.Line("shop", shop, access.Decide, "")+"\n")
	for _, insecure := range []bool{false, true} {
		k := startKoala(t, koalaHome(t), func(c *config.Config) {
			c.Access.Tokens = file
			if insecure {
				c.Access.Insecure = []string{"koala"}
			}
		})
		open := 403
		if insecure {
			open = 200
		}
		for _, tc := range []struct {
			path, token string
			want        int
		}{
			{"/rule/browse?act=a", "", open},
			{"/rule/browse?act=a", shop, 200},
			{"/rule/update?act=a", "", open},
			{"/rule/update?act=a", shop, open},
			{"/monitor/alive", "", 200},
		} {
			if a := ask(t, http.DefaultTransport, "POST", "http://"+k.addr+tc.path, tc.token, ""); a.status != tc.want {
				t.Errorf("insecure %v, %s: got %d %s, want %d", insecure, tc.path, a.status, a.text, tc.want)
			}
		}
	}
}
