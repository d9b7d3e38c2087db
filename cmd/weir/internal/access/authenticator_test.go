package access_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/access"
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

func TestAuthentication(t *testing.T) {
	t.Parallel()
	var reasons []access.Reason
	auth := &access.Authenticator{
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
		_, err := auth.Authenticate(access.CredentialsOf(r), tc.need)
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
	if h, err := (*access.Authenticator)(nil).Authenticate(access.Credentials{}, access.All); err != nil || h.Scopes != access.All {
		t.Errorf("no authentication: got %v %v, want everyone", h, err)
	}
}

// An authenticator admits holders by the namespace that they are bound to, as its reach states.
func TestReach(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		namespace                string // of the holder
		byDefault, named, forAll string // errors
	}{
		{"", "", "", ""},
		{"default", "", "", "shop may use the namespace default only; the call concerns all namespaces"},
		{
			"eu", `shop may use the namespace eu only, and the call is for "default"`, "",
			"shop may use the namespace eu only; the call concerns all namespaces",
		},
	} {
		line := access.Line("shop", "right", access.Decide, tc.namespace)
		auth := access.Authenticator{Keys: open(t, tokensFile(t, line+"\n"))}
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("Authorization", "Bearer right")
		shown := access.Credentials{Token: "right", Shown: true, Address: "192.0.2.1:99"}
		for reach, want := range map[access.Reach]string{
			access.ReachDefault: tc.byDefault, access.ReachNamed: tc.named, access.ReachAll: tc.forAll,
		} {
			auth.Reach = reach
			_, overHTTP := auth.Authenticate(access.CredentialsOf(r), access.Decide)
			_, other := auth.Authenticate(shown, access.Decide)
			for _, err := range []error{overHTTP, other} {
				if got := message(err); got != want {
					t.Errorf("namespace %q, reach %v: got %q, want %q", tc.namespace, reach, got, want)
				}
			}
		}
	}
}

// message returns the text of err, or an empty string for none.
func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A holder that is bound to a namespace cannot name another one. The refusal is
// counted, and says nothing of whether the other one exists.
func TestNamespaceOfHolder(t *testing.T) {
	t.Parallel()
	bound, free := &access.Holder{Name: "shop", Namespace: "eu"}, &access.Holder{Name: "ops"}
	var refused []access.Reason
	auth := &access.Authenticator{Refused: func(r access.Reason) { refused = append(refused, r) }}
	for _, tc := range []struct {
		auth        *access.Authenticator
		holder      *access.Holder
		asked, want string
	}{
		{auth, bound, "", "eu"},
		{auth, bound, "eu", "eu"},
		{auth, bound, "us", `shop may use the namespace eu only, and the call is for "us"`},
		{auth, bound, "default", `shop may use the namespace eu only, and the call is for "default"`},
		{auth, free, "", "default"},
		{auth, free, "us", "us"},
		{nil, nil, "", "default"},
		{nil, nil, "us", "us"},
		{nil, bound, "us", `shop may use the namespace eu only, and the call is for "us"`},
	} {
		got, err := tc.auth.Namespace(tc.holder, tc.asked)
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%v asks for %q: got %q, want %q", tc.holder, tc.asked, got, tc.want)
		}
	}
	if len(refused) != 2 || refused[0] != access.Elsewhere {
		t.Errorf("got refusals %v, want two", refused)
	}
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", "Shop-7", "a.b_c", "0", strings.Repeat("n", 64)} {
		if err := access.CheckName(good); err != nil {
			t.Errorf("got %v for %q", err, good)
		}
	}
	for _, bad := range []string{"", ".", "..", ".a", "-a", "_a", "a/b", "a\\b", "a b", "a\n", "\x00", "ä", "a:b", "%2e", strings.Repeat("n", 65)} {
		if access.CheckName(bad) == nil {
			t.Errorf("got no error for %q", bad)
		}
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	got := access.Redact([]string{
		"weir", "serve", "--store", "redis://u:s3cret@h/0", "--store=redis://:s3cret@h",
		"redis://u:s3%cret@h", "--rules", "rules.yaml", "--listen=https://:8443",
		"redis+sentinel://h/primary?db=1&sentinel_password=s3cret", "redis://h?password_file=f", "redis://h?x=%zz", "https://s3cret@h", "redis://u@h",
	})
	want := []string{
		"weir", "serve", "--store", "redis://u@h/0", "--store=redis://@h",
		"…", "--rules", "rules.yaml", "--listen=https://:8443",
		"redis+sentinel://h/primary?db=1", "redis://h?password_file=f", "…", "https://h", "redis://u@h",
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	if got := access.All.String(); got != "decide,record,read,override,admin" {
		t.Errorf("got %s", got)
	}
	if got, err := access.ParseScopes("admin,read,read"); err != nil || got != access.Admin|access.Read {
		t.Errorf("got %v %v", got, err)
	}
	if _, err := access.ParseScopes("Admin"); err == nil {
		t.Error("got no error for another spelling")
	}
}
