package access_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weirhq/weir/internal/access"
)

func TestHosts(t *testing.T) {
	t.Parallel()
	h := access.NewHosts([]string{"Weir.example.org"})
	for host, want := range map[string]bool{
		"":                            true,
		"localhost":                   true,
		"localhost:8080":              true,
		"LOCALHOST:8080":              true,
		"weir:8080":                   true, // as services are called in a container network
		"app.localhost":               true,
		"127.0.0.1:8080":              true,
		"192.0.2.1":                   true,
		"[::1]:8080":                  true,
		"[::1]":                       true,
		"weir.example.org:8080":       true,
		"weir.example.org.":           true,
		"evil.example:8080":           false,
		"localhost.evil.example":      false,
		"127.0.0.1.evil.example:8080": false,
	} {
		if got := h.Has(host); got != want {
			t.Errorf("%q: got %v, want %v", host, got, want)
		}
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	var reasons []access.Reason
	lock := &access.Lock{
		Keys:    open(t, "", access.Own{Name: "shop", Token: "right", Scopes: access.Decide | access.Read}),
		Refused: func(r access.Reason) { reasons = append(reasons, r) },
	}
	for _, tc := range []struct {
		authorization string
		need          access.Scope
		want          string
	}{
		{"Bearer right", access.Decide, ""},
		{"bearer  right ", access.Decide | access.Read, ""},
		{"Bearer right", access.None, ""},
		{"Bearer right", access.Admin, "shop lacks scope admin; it has decide,read"},
		{"Bearer wrong", access.None, "the token is not known"},
		{"Basic right", access.None, "the call needs a token: send Authorization: Bearer TOKEN"},
		{"", access.None, "the call needs a token: send Authorization: Bearer TOKEN"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("Authorization", tc.authorization)
		_, err := lock.Enter(r, tc.need)
		if tc.want == "" && err == nil {
			continue
		}
		if err == nil || err.Error() != tc.want {
			t.Errorf("%q for %v: got %v, want %s", tc.authorization, tc.need, err, tc.want)
		}
	}
	want := []access.Reason{access.NoScope, access.Unknown, access.Missing, access.Missing}
	if len(reasons) != len(want) {
		t.Errorf("got reasons %v, want %v", reasons, want)
	}
	if h, err := (*access.Lock)(nil).Enter(nil, access.All); err != nil || h.Scopes != access.All {
		t.Errorf("no lock: got %v %v, want everyone", h, err)
	}
}

// A service has the namespace default, and a token of another one opens nothing.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	for namespace, want := range map[string]string{
		"":        "",
		"default": "",
		"eu":      "shop may use the namespace eu only; this service has the namespace default",
	} {
		line := access.Line("shop", "right", access.Decide, namespace)
		lock := &access.Lock{Keys: open(t, tokensFile(t, line+"\n"))}
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("Authorization", "Bearer right")
		_, err := lock.Enter(r, access.Decide)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("namespace %q: got %q, want %q", namespace, got, want)
		}
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	got := access.Redact([]string{
		"weir", "serve", "--koala-token", "s3cret", "--koala-token=s3cret", "--store", "redis://u:s3cret@h/0", "--store=redis://:s3cret@h",
		"redis://u:s3%cret@h", "--rules", "rules.yaml", "--listen=https://:8443",
	})
	want := []string{
		"weir", "serve", "--koala-token", "…", "--koala-token=…", "--store", "redis://u@h/0", "--store=redis://@h",
		"…", "--rules", "rules.yaml", "--listen=https://:8443",
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	if got := access.All.String(); got != "decide,record,read,admin" {
		t.Errorf("got %s", got)
	}
	if got, err := access.ParseScopes("admin,read,read"); err != nil || got != access.Admin|access.Read {
		t.Errorf("got %v %v", got, err)
	}
	if _, err := access.ParseScopes("Admin"); err == nil {
		t.Error("got no error for another spelling")
	}
}
