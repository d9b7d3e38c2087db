package access_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/access"
)

// BenchmarkAuthenticate measures what an authenticator costs a call: none, one that looks at the
// host only (on loopback), and one with tokens.
func BenchmarkAuthenticate(b *testing.B) {
	file := filepath.Join(b.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(access.Line("shop", "right", access.Decide, "")+"\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	keys, err := access.OpenKeys(file)
	if err != nil {
		b.Fatal(err)
	}
	defer keys.Close()
	r := httptest.NewRequest(http.MethodPost, "/v1/take", http.NoBody)
	r.Host = "127.0.0.1:8080"
	r.Header.Set("Authorization", "Bearer right")
	for _, row := range []struct {
		name string
		auth *access.Authenticator
	}{{"none", nil}, {"hosts", &access.Authenticator{Hosts: access.NewHosts(nil)}}, {"tokens", &access.Authenticator{Keys: keys}}} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := row.auth.Authenticate(access.CredentialsOf(r), access.Decide); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
