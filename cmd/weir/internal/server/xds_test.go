package server_test

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/cmd/weir/internal/config"
	"github.com/weirhq/weir/cmd/weir/internal/xdstest"
	"github.com/weirhq/weir/internal/redistest"
)

// shopLimits returns the limits of a domain: n a day for each user.
func shopLimits(n int) string {
	return fmt.Sprintf(`{"name":"shop-limits","domain":"shop","descriptors":[{"key":"user","rate_limit":{"unit":"DAY","requests_per_unit":%d}}]}`, n)
}

// received is a line of the log: limits are in force.
const received = `msg="limits received from the xDS server"`

// An xDS server sends the rules, as Envoy Gateway does: over TLS with certificates on both sides, to a
// node by its name. What it sends is in force at once, and counts stay; what has an error
// is refused with the reason; a server that is away changes nothing, and its next one is
// found.
func TestXDS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	ca.sign(t, "server", &x509.Certificate{DNSNames: []string{"envoy-gateway"}}, newKey(t))
	ca.sign(t, "client", &x509.Certificate{DNSNames: []string{"envoy-ratelimit"}}, newKey(t))
	certs, err := access.OpenCertificates(ca.path("server.pem"), ca.path("server.key"), ca.path("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	m := xdstest.New(t, fmt.Sprint("127.0.0.1:", redistest.FreePort(t)), grpc.Creds(credentials.NewTLS(certs.Config("h2"))))
	s := start(t, func(c *config.Config) {
		c.Envoy.XDS = &config.XDS{
			Server: m.Addr, Node: xdstest.Node, Metadata: map[string]string{"region": "eu"}, Headers: map[string]string{"tenant": "a"},
			TLS: true, Cert: ca.path("client.pem"), Key: ca.path("client.key"), CA: ca.path("ca.pem"), ServerName: "envoy-gateway",
			RetryAfter: 10 * time.Millisecond, MaxRetryAfter: 50 * time.Millisecond, MaxMessage: 1 << 20,
		}
	})
	take := func(want int, text string) {
		t.Helper()
		if a := ask(t, http.DefaultTransport, "POST", s.api+"/json", "", userAnn); a.status != want || !strings.Contains(strings.ReplaceAll(a.text, " ", ""), text) {
			t.Errorf("got %d %s, want %d with %s", a.status, a.text, want, text)
		}
	}
	ready := func(want int) {
		t.Helper()
		for _, url := range []string{s.api + "/healthcheck", s.admin + "/readyz"} {
			if a := ask(t, http.DefaultTransport, "GET", url, "", ""); (a.status == 200) != (want == 200) {
				t.Errorf("%s: got %d %s, want %d", url, a.status, a.text, want)
			}
		}
	}
	const none = `"unit":"DAY"},"durationUntilReset"` // remains

	if md := <-m.Headers; strings.Join(md["tenant"], "") != "a" {
		t.Errorf("got headers %v, want the tenant", md)
	}
	ready(503)
	take(503, "")
	m.Send(t, shopLimits(2))
	s.logs.await(t, 1, received)
	ready(200)
	take(200, `"limitRemaining":1`)
	take(200, none)
	take(429, "OVER_LIMIT")
	if a := ask(t, http.DefaultTransport, "GET", s.admin+"/rlconfig", "", ""); !strings.Contains(a.text, "shop.user: unit=DAY requests_per_unit=2") {
		t.Errorf("rlconfig: got %s", a.text)
	}

	m.Send(t, shopLimits(5)) // 3 of them are used, by a call that was denied, too
	s.logs.await(t, 2, received)
	take(200, `"limitRemaining":1`)

	// refused awaits a refusal; the server may send again what was refused before.
	refused := func(want string) {
		t.Helper()
		for got := ""; !strings.Contains(got, want); {
			got = <-m.Refusals
		}
	}
	m.Send(t, shopLimits(5), `{"name":"other","domain":"shop"}`)
	refused(`domain "shop" is in shop-limits, too`)
	m.Send(t, `{"name":"late","domain":"shop","descriptors":[{"key":"user","rate_limit":{"unit":99}}]}`)
	refused(`unit "99": want second`)
	take(200, none)

	m.Stop()
	s.logs.await(t, 1, "no stream to the xDS server; the limits in force stay")
	take(429, "OVER_LIMIT")
	m.Send(t, shopLimits(9))
	m.Start(t)
	s.logs.await(t, 3, received)
	take(200, `"limitRemaining":2`)

	m.Send(t) // no limits at all
	s.logs.await(t, 4, received)
	take(200, `"statuses":[{"code":"OK"}]`)
	if a := ask(t, http.DefaultTransport, "POST", s.admin+"/-/reload", "", ""); a.status != 409 || !strings.Contains(a.text, "come from the xDS server") {
		t.Errorf("reload: got %d %s, want 409", a.status, a.text)
	}
}

// Limits are in force within a second after a server sent them, also after it was refused some.
func TestXDSDelay(t *testing.T) {
	t.Parallel()
	m := xdstest.New(t, fmt.Sprint("127.0.0.1:", redistest.FreePort(t)))
	m.Send(t, shopLimits(1))
	s := start(t, func(c *config.Config) {
		c.Envoy.XDS = &config.XDS{Server: m.Addr, Node: xdstest.Node, RetryAfter: time.Second, MaxRetryAfter: time.Second, MaxMessage: 1 << 20, ReadyWithout: true}
	})
	s.logs.await(t, 1, received)
	clock := redistest.Clock(t)
	for n := 2; n < 7; n++ {
		if n%2 == 0 {
			m.Send(t, `{"name":"no-domain"}`)
			<-m.Refusals
		}
		began := clock()
		m.Send(t, shopLimits(n))
		s.logs.await(t, n, received)
		if took := clock() - began; took > time.Second {
			t.Errorf("%d: in force after %v, want at most a second", n, took)
		}
	}
}
