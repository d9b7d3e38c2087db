package access_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/fault"
)

// tokensFile returns a new file with a text.
func tokensFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, text)
	return path
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// open reads a tokens file, which must be valid.
func open(t testing.TB, path string, own ...access.Own) *access.Keys {
	t.Helper()
	k, err := access.OpenKeys(path, own...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

const (
	hashA = "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" // of "a"
	hashB = "sha256:3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d" // of "b"
)

func TestTokensFile(t *testing.T) {
	t.Parallel()
	k := open(t, tokensFile(t, "# callers\n\nshop "+hashA+" scopes=decide,record namespace=shop\r\n\tops\t"+hashB+"  scopes=admin \n"))
	if k.Len() != 2 {
		t.Errorf("got %d tokens, want 2", k.Len())
	}
	for token, want := range map[string]*access.Holder{
		"a": {Name: "shop", Scopes: access.Decide | access.Record, Namespace: "shop"},
		"b": {Name: "ops", Scopes: access.Admin},
	} {
		got, err := k.Holder(access.Credentials{Token: token, Shown: true, Address: "192.0.2.1:1234"})
		if err != nil || got.Name != want.Name || got.Scopes != want.Scopes || got.Namespace != want.Namespace {
			t.Errorf("%s: got %v %v, want %v", token, got, err, want)
		}
	}
}

// Each fault is one line, with its place, and never shows a word that may be
// a token or a hash.
func TestTokensFileFaults(t *testing.T) {
	t.Parallel()
	token := access.NewToken()
	for _, tc := range []struct{ line, want string }{
		{"shop", "1:5: no hash: want NAME sha256:HASH scopes=SCOPE,…; weir token new writes such a line"},
		{"shop weir_SECRETSECRETSECRET scopes=read", "1:6: the second word is not a hash: want sha256:…, or cert:NAME for a client's certificate"},
		{"shop sha256:SECRET scopes=read", "1:6: want sha256: and 64 hexadecimal digits; weir token new writes them"},
		{"shop " + hashA, "1:77: no scopes: want scopes=decide,record,read,override,admin, or some of them"},
		{"shop " + hashA + " scopes=", `1:78: "": not a scope; want decide, record, read, override, admin, separated by commas`},
		{"shop " + hashA + " scopes=read,write", `1:78: "write": not a scope; want decide, record, read, override, admin, separated by commas`},
		{"shop " + hashA + " scopes=read scopes=read", "1:90: scopes is there twice"},
		{"shop " + hashA + " scope=read", `1:78: "scope": unknown; want scopes=SCOPE,… or namespace=NAME`},
		{"shop " + hashA + " scopes=read namespace=../x", `1:90: "../x": want up to 64 letters, digits, '.', '_' and '-', the first a letter or digit`},
		{token, "1:1: a token or a hash instead of a name: want up to 64 letters, digits, '.', '_' and '-', the first a letter or digit"},
		{hashA[7:] + " " + hashA + " scopes=read", "1:1: a token or a hash instead of a name: want up to 64 letters, digits, '.', '_' and '-', the first a letter or digit"},
		{hashA + " scopes=read", "1:1: a word of 71 characters: want up to 64 letters, digits, '.', '_' and '-', the first a letter or digit"},
		{"shop " + hashA + " " + token, "1:78: a word of 31 characters: unknown; want scopes=SCOPE,… or namespace=NAME"},
		{"shop " + hashA + " scopes=" + token, "1:78: a word of 31 characters: not a scope; want decide, record, read, override, admin, separated by commas"},
		{"shop " + hashA + " scopes=read namespace=" + token, "1:90: a token or a hash instead of a name: want up to 64 letters, digits, '.', '_' and '-', the first a letter or digit"},
		{"shop cert: scopes=read", "1:6: cert: names no certificate"},
		{"é " + hashA + " scopes=read", `1:1: "é": want up to 64 letters, digits, '.', '_' and '-', the first a letter or digit`},
		{"a " + hashA + " scopes=read\nb " + hashA + " scopes=read", "2:1: the same hash as in line 1"},
		{"a " + hashA + " scopes=read\na " + hashB + " scopes=read", "2:1: the same name as in line 1"},
		{"a cert:x scopes=read\nb cert:x scopes=read", "2:1: the same certificate as in line 1"},
		{"# nothing", ""},
	} {
		path := tokensFile(t, tc.line+"\n")
		_, err := access.OpenKeys(path)
		if tc.want == "" {
			if err == nil || !strings.HasSuffix(err.Error(), "holds no token; weir token new adds one") {
				t.Errorf("%s: got %v, want that there is no token", tc.line, err)
			}
			continue
		}
		faults := fault.Of(err)
		if len(faults) != 1 || faults[0].Summary() != path+":"+tc.want {
			t.Errorf("%s: got %v, want %s", tc.line, err, tc.want)
		}
		if err != nil && strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: got a secret in %v", tc.line, err)
		}
	}
}

// FuzzTokensFile checks that what is accepted is complete, and that no text makes
// the reader fail in another way than with faults.
func FuzzTokensFile(f *testing.F) {
	f.Add("shop " + hashA + " scopes=decide,record namespace=shop\n")
	f.Add("ops cert:ops.example scopes=admin\n# end")
	f.Add("a  b\tc=d\r\n\x00 =")
	f.Fuzz(func(t *testing.T, text string) {
		path := tokensFile(t, text)
		k, err := access.OpenKeys(path)
		if err != nil {
			if !strings.Contains(err.Error(), path) {
				t.Fatalf("%q: got %v, want the file in it", text, err)
			}
			return
		}
		defer k.Close()
		words := strings.Fields(text)
		if k.Len() == 0 || len(words) < 3*k.Len() {
			t.Fatalf("%q: got %d tokens of %d words", text, k.Len(), len(words))
		}
	})
}

func TestLineIsRead(t *testing.T) {
	t.Parallel()
	token := access.NewToken()
	if err := access.CheckToken(token); err != nil {
		t.Errorf("a new token: %v", err)
	}
	line := access.Line("shop", token, access.Decide|access.Admin, "eu")
	if strings.Contains(line, token) {
		t.Fatalf("got the token in %s", line)
	}
	h, err := open(t, tokensFile(t, line)).Holder(access.Credentials{Token: token, Shown: true})
	if err != nil || h.Name != "shop" || h.Scopes != access.Decide|access.Admin || h.Namespace != "eu" {
		t.Errorf("got %v %v, want what the line says: %s", h, err, line)
	}
}

func TestCheckToken(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]string{
		strings.Repeat("x", 19):        "has 19 characters: want 20 to 512",
		strings.Repeat("x", 20):        "",
		strings.Repeat("x", 513):       "has 513 characters",
		strings.Repeat("x", 20) + " y": "character 21 cannot be sent in a header",
		strings.Repeat("ü", 20):        "character 1 cannot be sent in a header",
	} {
		err := access.CheckToken(token)
		if want == "" && err == nil {
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), token) {
			t.Errorf("%d bytes: got %v, want %s", len(token), err, want)
		}
	}
}
