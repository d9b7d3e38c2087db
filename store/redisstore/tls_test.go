package redisstore_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/store"
	"github.com/weirhq/weir/store/redisstore"
)

// authority makes certificates for the test's servers and clients.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.issue("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue writes name.pem and name.key and returns their paths. The first one
// signs itself and then the others.
func (a *authority) issue(name string, c *x509.Certificate) (cert, key string) {
	a.t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if a.key == nil {
		a.cert, a.key = c, own
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &own.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(name+".pem", "CERTIFICATE", der), a.write(name+".key", "PRIVATE KEY", secret)
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// A server with TLS, which answers only clients with a certificate.
func TestTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	cert, key := a.issue("server", &x509.Certificate{DNSNames: []string{"redis.internal"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	mine, myKey := a.issue("client", &x509.Certificate{})
	ca := filepath.Join(a.dir, "ca.pem")
	port := redistest.FreePort(t)
	redistest.Server(t, "--tls-port", fmt.Sprint(port), "--tls-ca-cert-file", ca,
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "yes")
	to := func(options ...string) string {
		q := url.Values{"timeout": {"5s"}}
		for i := 0; i < len(options); i += 2 {
			q.Set(options[i], options[i+1])
		}
		return fmt.Sprintf("rediss://127.0.0.1:%d?%s", port, q.Encode())
	}
	op := hourly(10, "rule", "k")
	for _, server := range []string{"", "redis.internal"} {
		options := []string{"ca", ca, "cert", mine, "key", myKey}
		if server != "" {
			options = append(options, "server_name", server)
		}
		take(t, openURL(t, to(options...)), op)
	}
	for want, options := range map[string][]string{
		"unknown authority": {"cert", mine, "key", myKey},
		"other.internal":    {"ca", ca, "cert", mine, "key", myKey, "server_name", "other.internal"},
	} {
		// A machine that is busy may need more time than Open has.
		redistest.Eventually(t, "the certificate is refused", func() bool {
			s, err := redisstore.Open(t.Context(), to(options...))
			if err == nil {
				s.Close()
				return false
			}
			wantIn(t, err.Error(), want)
			return true
		})
	}
	// A server that refuses a client closes the connection.
	outage(t, openURL(t, to("ca", ca)), store.Take, op)
}

// A server on a socket of this machine.
func TestUnixSocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "weir") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "redis.sock")
	redistest.Server(t, "--unixsocket", socket)
	take(t, openURL(t, "unix://"+socket+"?db=1&timeout=5s"), hourly(10, "rule", "k"))
}

// A password from a file, for a cluster whose nodes all need it.
func TestPasswordFile(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t, 3, 0, "--requirepass", "from a file", "--masterauth", "from a file")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openURL(t, "redis+cluster://"+c.Addrs()+"?timeout=5s&password_file="+url.QueryEscape(file))
	connected(t, s, 3)
	for _, key := range keysOn(c.Masters...) {
		take(t, s, hourly(10, "rule", key))
	}
	_, err := redisstore.Open(t.Context(), "redis+cluster://"+c.Addrs())
	if err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("without it: got %v, want NOAUTH", err)
	}
}
