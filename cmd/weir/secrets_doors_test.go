package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/weirhq/weir"
	grpcclient "github.com/weirhq/weir/client"
	"github.com/weirhq/weir/internal/seal"
)

// visitor makes calls by all front ends of a process, with tokens that are right, wrong,
// missing or of other scopes. A witness hears the answers.
type visitor struct {
	t       *testing.T
	w       *witness
	p       *process
	trust   *x509.CertPool
	secrets map[string]string
	user    string
}

// all makes calls by all front ends. It returns a receipt.
func (v *visitor) all(when string) (receipt string) {
	v.t.Helper()
	full := v.secrets["WEIR_TOKEN"]
	shop, ops := v.secrets["the token of shop"], v.secrets["the token of ops"]
	_, took := v.http(when, http.MethodPost, v.p.api+"/v1/take", v.body("spend", ""), full)
	if m := receiptIn.FindStringSubmatch(took); m != nil {
		receipt = m[1]
	}
	for _, token := range []string{full, shop, ops, ""} {
		for _, path := range []string{"take", "check", "record", "refund", "settle", "cancel", "renew", "explain", "gate", "nope"} {
			for _, body := range []string{
				v.body("post", ""), v.body("login", ""), v.body("spend", receipt), v.body("spend", "0123456789abcdef"),
				`{"attributes":{"user":["` + v.user + `"]}}`, `{"attributes":{"user":"` + v.user, "",
			} {
				v.http(when, http.MethodPost, v.p.api+"/v1/"+path, body, token)
			}
		}
		v.http(when, http.MethodPost, v.p.api+"/v1/batch", `{"requests":[`+v.body("post", "")+`,{"verb":"nope"}]}`, token)
		for _, path := range []string{"rules", "usage?rule=posts&user=" + v.user, "usage?rule=nope&user=" + v.user, "usage?rule=posts", "openapi.yaml"} {
			v.http(when, http.MethodGet, v.p.api+"/v1/"+path, "", token)
		}
		for _, path := range []string{"top?rule=posts", "top?rule=nope", "denials"} {
			status, text := v.call(http.MethodGet, v.p.api+"/v1/"+path, "", bearer(token))
			v.w.hear(fmt.Sprintf("https /v1/%s %s: %d", path, when, status), text)
		}
		v.debug(when, token)
		v.grpc(when, token)
		v.resp(when, token)
	}
	v.http(when, http.MethodDelete, v.p.api+"/v1/usage?rule=nope&user="+v.user, "", full)
	// Secrets in the wrong place, of which the log must not tell either.
	for _, header := range []http.Header{
		{"Authorization": {full}}, {"Authorization": {"Basic " + full}}, {"Authorization": {"Bearer " + full + " " + full}},
		{"Authorization": {"Bearer " + full, "Bearer " + full}},
	} {
		status, text := v.call(http.MethodPost, v.p.api+"/v1/take", v.body("post", ""), header)
		v.w.answer(fmt.Sprintf("https with a wrong header %s: %d", when, status), text)
	}
	return receipt
}

// body returns a request.
func (v *visitor) body(action, receipt string) string {
	more := ""
	if receipt != "" {
		more = `,"receipt":"` + receipt + `"`
	}
	return `{"attributes":{"action":"` + action + `","user":"` + v.user + `","amount":"1"}` + more + `}`
}

var receiptIn = regexp.MustCompile(`"receipt":"([^"]+)"`)

func bearer(token string) http.Header {
	if token == "" {
		return http.Header{}
	}
	return http.Header{"Authorization": {"Bearer " + token}}
}

// http makes a call, and hears its answer.
func (v *visitor) http(when, method, url, body, token string) (status int, text string) {
	v.t.Helper()
	status, text = v.call(method, url, body, bearer(token))
	v.w.answer(fmt.Sprintf("%s %s %s: %d", url, method, when, status), text)
	return status, text
}

func (v *visitor) call(method, url, body string, header http.Header) (status int, text string) {
	v.t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header = header
	via := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: v.trust}, DisableKeepAlives: true}
	resp, err := via.RoundTrip(req)
	if err != nil {
		v.t.Fatalf("%s %s: %v", method, url, err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, fmt.Sprint(resp.Header) + readAll(resp.Body, resp.Header)
}

// debug reads all pages of the admin address.
func (v *visitor) debug(when, token string) {
	v.t.Helper()
	for _, page := range []string{
		"metrics", "healthz", "readyz", "debug/vars", "debug/pprof/", "debug/pprof/cmdline", "debug/pprof/symbol", "debug/pprof/goroutine?debug=1",
		"debug/pprof/goroutine?debug=2", "debug/pprof/goroutine", "debug/pprof/heap", "debug/pprof/heap?debug=1", "debug/pprof/allocs?debug=1",
		"debug/pprof/mutex?debug=1", "debug/pprof/block?debug=1", "debug/pprof/threadcreate?debug=1", "debug/pprof/trace?seconds=0.01",
		"stats", "rlconfig", "debug/requests", "config", "nope",
	} {
		status, text := v.call(http.MethodGet, v.p.admin+"/"+page, "", bearer(token))
		v.w.hear(fmt.Sprintf("admin /%s %s: %d", page, when, status), text)
	}
}

// reload asks for a reload.
func (v *visitor) reload(token string) {
	v.t.Helper()
	status, text := v.call(http.MethodPost, v.p.admin+"/-/reload", "", bearer(token))
	v.w.hear(fmt.Sprintf("admin reload: %d", status), text)
}

// grpc makes calls of weir.v1, of Envoy's protocol and of reflection.
func (v *visitor) grpc(when, token string) {
	v.t.Helper()
	at := v.p.printed(v.t, "gRPC:")
	hear := func(call string, answer any, err error) {
		v.w.answer("gRPC "+call+" "+when, fmt.Sprintf("%+v\n%v\n%+v", answer, err, err))
	}
	for _, streams := range []int{0, 1} {
		options := []grpcclient.Option{grpcclient.WithTLS(&tls.Config{RootCAs: v.trust}), grpcclient.WithStreams(streams)}
		if token != "" {
			options = append(options, grpcclient.WithToken(token))
		}
		c, err := grpcclient.New(at, options...)
		if err != nil {
			v.t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		for _, action := range []string{"post", "login", "spend"} {
			r := weir.Request{Attributes: weir.Attributes("action", action, "user", v.user, "amount", "1")}
			d, err := c.Take(ctx, r)
			hear("take", d.Outcome, err)
			_, err = c.Settle(ctx, weir.Receipt{Take: seal.Take{ID: [12]byte{1}}}, r)
			hear("settle", nil, err)
			_, err = c.Usage(ctx, "nope", r.Attributes)
			hear("usage", nil, err)
		}
		cancel()
		_ = c.Close()
	}
	conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: v.trust})))
	if err != nil {
		v.t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	for _, domain := range []string{"", "edge"} {
		answer, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, &rls.RateLimitRequest{
			Domain:      domain,
			Descriptors: []*common.RateLimitDescriptor{{Entries: []*common.RateLimitDescriptor_Entry{{Key: "action", Value: "login"}, {Key: "user", Value: v.user}}}},
		})
		hear("ShouldRateLimit", answer, err)
	}
	hear("an unknown method", nil, conn.Invoke(ctx, "/weir.v1.WeirService/Nope", &rls.RateLimitRequest{}, &rls.RateLimitResponse{}))
}

// resp sends commands of Redis clients.
func (v *visitor) resp(when, token string) {
	v.t.Helper()
	var lines strings.Builder
	command := func(words ...string) {
		fmt.Fprintf(&lines, "*%d\r\n", len(words))
		for _, word := range words {
			fmt.Fprintf(&lines, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	if token != "" {
		command("AUTH", token, token, token)
		command("AUTH", "nope", token)
		command("HELLO", "9", "AUTH", "default", token)
		command("HELLO", "2", "AUTH", "default", token, "SETNAME", "")
		command("HELLO", "2", "AUTH", "default", token)
		command("AUTH", token)
	}
	for _, words := range []string{
		"WEIR.TAKE action post user " + v.user, "WEIR.TAKE action login user " + v.user, "WEIR.RECORD action post user " + v.user,
		"WEIR.SETTLE nope user " + v.user, "WEIR.USAGE nope user " + v.user, "WEIR.TAKE user", "CL.THROTTLE " + v.user + " 1 2 3 nope",
		"CL.THROTTLE " + v.user + " 1 2 60", "INFO", "CLIENT LIST", "CLIENT INFO", "COMMAND", "CONFIG GET *", "CONFIG SET requirepass x",
		"SELECT 9", "NOPE x", "QUIT",
	} {
		command(strings.Fields(words)...)
	}
	c, err := tls.Dial("tcp", v.p.printed(v.t, "Redis protocol:"), &tls.Config{RootCAs: v.trust})
	if err != nil {
		v.t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, lines.String()); err != nil {
		v.t.Fatal(err)
	}
	text, _ := io.ReadAll(c)
	v.w.answer("RESP "+when, string(text))
}

// wrongTokens guesses tokens by each front end, until the service slows the address down.
func (v *visitor) wrongTokens() {
	v.t.Helper()
	wrong := v.secrets["a wrong token"]
	v.grpc("with a wrong token", wrong)
	v.resp("with a wrong token", wrong)
	status := 0
	for range 12 {
		status, _ = v.http("with a wrong token", http.MethodPost, v.p.api+"/v1/take", v.body("post", ""), wrong)
		v.debug("with a wrong token", wrong)
	}
	if status != http.StatusTooManyRequests {
		v.t.Errorf("got status %d for wrong tokens at the end, want 429", status)
	}
	for _, text := range []string{"GET / HTTP/9.9\r\nAuthorization: " + wrong + "\r\n\r\n", wrong + "\r\n\r\n"} {
		for _, at := range []string{v.p.api, v.p.admin, "https://" + v.p.printed(v.t, "gRPC:"), "https://" + v.p.printed(v.t, "Redis protocol:")} {
			u, err := url.Parse(at)
			if err != nil {
				v.t.Fatal(err)
			}
			v.garbage(u.Host, text)
		}
	}
}

// garbage sends text, with TLS and without.
func (v *visitor) garbage(host, text string) {
	v.t.Helper()
	plain, err := net.Dial("tcp", host)
	if err != nil {
		v.t.Fatal(err)
	}
	secret, err := tls.Dial("tcp", host, &tls.Config{RootCAs: v.trust})
	if err != nil {
		v.t.Fatal(err)
	}
	for _, c := range []net.Conn{plain, secret} {
		_ = c.SetDeadline(time.Now().Add(5 * time.Second)) // gRPC may wait for more
		_, _ = io.WriteString(c, text)
		if conn, ok := c.(interface{ CloseWrite() error }); ok {
			_ = conn.CloseWrite()
		}
		answer, _ := io.ReadAll(c)
		v.w.answer("garbage", string(answer))
		_ = c.Close()
	}
}
