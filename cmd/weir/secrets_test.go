package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/access"
	"github.com/weirhq/weir/internal/redistest"
)

// witness collects what the service and the commands print, send and answer.
type witness struct {
	mu    sync.Mutex
	heard []heard // guarded by mu
}

// heard is one text, and where it comes from. Texts that only the sender of a request
// gets may repeat the keys of that request.
type heard struct {
	where, text string
	own         bool
}

func (w *witness) hear(where, text string) { w.add(heard{where, text, false}) }

func (w *witness) answer(where, text string) { w.add(heard{where, text, true}) }

func (w *witness) add(h heard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, h)
}

// names returns the names of the secrets that text has in some form.
func names(secrets map[string]string, text string) (found []string) {
	for name, secret := range secrets {
		sum := sha256.Sum256([]byte(secret))
		for _, form := range []string{
			secret, url.QueryEscape(secret), hex.EncodeToString([]byte(secret)),
			base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
			hex.EncodeToString(sum[:]), string(sum[:]), fmt.Sprint([]byte(secret)), fmt.Sprint(sum[:]),
		} {
			if strings.Contains(text, form) {
				found = append(found, name)
				break
			}
		}
	}
	return found
}

// check fails the test for each text that has a secret, and for each text that has a
// key, unless the text is an answer. It fails, too, if nothing of a kind was heard.
func (w *witness) check(t *testing.T, secrets, keys map[string]string, kinds ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, kind := range kinds {
		n := 0
		for _, h := range w.heard {
			if strings.HasPrefix(h.where, kind) {
				n += len(h.text)
			}
		}
		if n == 0 {
			t.Errorf("%s: heard nothing", kind)
		}
	}
	for _, h := range w.heard {
		found := names(secrets, h.text)
		if !h.own {
			found = append(found, names(keys, h.text)...)
		}
		if found != nil {
			t.Errorf("%s: got %s in\n%.3000s", h.where, strings.Join(found, ", "), guilty(h.text, secrets, keys))
		}
	}
}

// guilty returns the lines of text that have a secret or a key.
func guilty(text string, secrets, keys map[string]string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if names(secrets, line) != nil || names(keys, line) != nil {
			b.WriteString(line)
		}
	}
	return b.String()
}

// hearProcess hears what a process has printed and logged, and its command line.
func (w *witness) hearProcess(t *testing.T, name string, p *process, secrets map[string]string) {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d/", p.Process.Pid)
	line, err := os.ReadFile(proc + "cmdline")
	if err != nil {
		t.Skipf("no /proc here: %v", err)
	}
	w.hear(name+" command line", string(line))
	// The process has these secrets, and names finds them.
	environ := readFile(t, proc+"environ")
	for secret, text := range secrets {
		if len(names(map[string]string{secret: text}, environ)) == 0 {
			t.Errorf("%s: %s is not in the environment of the process", name, secret)
		}
	}
	p.end(t)
	w.hear(name+" output", p.out.String())
	w.hear(name+" log", p.logs.String())
}

// otlp returns a collector of OpenTelemetry, whose callers need a password.
func (w *witness) otlp(t *testing.T, user, password string) (endpoint string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		w.hear("otlp "+r.URL.Path, readAll(r.Body, r.Header))
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

// readAll reads a body, which may be compressed. So may what is in it: a profile.
func readAll(body io.Reader, header http.Header) string {
	if header.Get("Content-Encoding") == "gzip" {
		if unpacked, err := gzip.NewReader(body); err == nil {
			body = unpacked
		}
	}
	text, _ := io.ReadAll(body)
	if unpacked, err := gzip.NewReader(bytes.NewReader(text)); err == nil {
		more, _ := io.ReadAll(unpacked)
		text = append(text, more...)
	}
	return string(text)
}

// secretRules deny the second post and the second login of a user, and hold what is spent.
const secretRules = `
rules:
  - {name: posts, when: {action: post}, per: [user], limit: 1, window: 1h, on_outage: deny}
  - {name: logins, when: {action: login}, per: [user], limit: 1, window: 1h, ban: {for: 1h}, on_outage: allow}
  - {name: spent, when: {action: spend}, per: [user], sum: amount, limit: 100, window: 1h, hold: 1m, on_outage: local}
`

// TestNoSecrets runs services with every kind of secret, makes calls fail in each way by
// each front end, and looks for the secrets in all that comes out: logs, errors, process
// arguments, debug pages, metrics, telemetry, answers and reports. Keys of users must not
// be in what others see, where --log-keys hides them.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{"none", "hashed"} {
		t.Run("log-keys="+keys, func(t *testing.T) { t.Parallel(); testNoSecrets(t, keys) })
	}
}

func testNoSecrets(t *testing.T, logKeys string) {
	dir := t.TempDir()
	node := redistest.Server(t)
	secrets := map[string]string{
		"WEIR_TOKEN":            access.NewToken(),
		"the token of shop":     access.NewToken(),
		"the token of ops":      access.NewToken(),
		"a wrong token":         access.NewToken(),
		"the Redis password":    "Redis/pass@word%and:more",
		"the OTLP password":     "otlp-swordfish",
		"the OTLP header":       "otlp-bearer-of-the-collector",
		"the secret for hashes": "hashes-of-keys-secret",
	}
	hidden := map[string]string{"the key of a user": "ann-4711-hidden"}
	node.Must("ACL", "SETUSER", "weir", "on", ">"+secrets["the Redis password"], "~*", "&*", "+@all")
	cert, key, trust := selfSigned(t)
	pem := readFile(t, key)
	secrets["the TLS key"] = strings.Split(pem, "\n")[1]

	tokens, rules := filepath.Join(dir, "tokens"), filepath.Join(dir, "rules.yaml")
	write := func(file, text string) {
		t.Helper()
		writeFile(t, file, text)
	}
	lines := access.Line("shop", secrets["the token of shop"], access.Decide|access.Record, "") + "\n" +
		access.Line("ops", secrets["the token of ops"], access.Read|access.Admin, "") + "\n"
	write(tokens, lines)
	write(rules, secretRules)

	w := &witness{}
	user := url.UserPassword("weir", secrets["the Redis password"])
	environment := map[string]string{
		"WEIR_TOKEN":                  secrets["WEIR_TOKEN"],
		"WEIR_STORE":                  "redis://" + user.String() + "@" + node.Addr(),
		"OTEL_EXPORTER_OTLP_ENDPOINT": w.otlp(t, "weir", secrets["the OTLP password"]),
		"OTEL_EXPORTER_OTLP_HEADERS":  "x-token=" + secrets["the OTLP header"],
		"OTEL_METRIC_EXPORT_INTERVAL": "200",
		"OTEL_BSP_SCHEDULE_DELAY":     "100",
	}
	set := map[string]string{}
	for _, name := range []string{"WEIR_TOKEN", "the Redis password", "the OTLP password", "the OTLP header"} {
		set[name] = secrets[name]
	}
	format := "text"
	if logKeys == "hashed" {
		environment["WEIR_LOG_KEYS_SECRET"] = secrets["the secret for hashes"]
		set["the secret for hashes"] = secrets["the secret for hashes"]
		format = "json"
	}
	p := startProcess(t, exports(environment), "", "--rules", rules, "--tokens", tokens, "--tls-cert", cert, "--tls-key", key,
		"--listen https://127.0.0.1:0 --admin https://127.0.0.1:0 --grpc-listen https://127.0.0.1:0 --resp-listen rediss://127.0.0.1:0",
		"--nodes 2 --store-timeout 1s --log-level debug --log-format", format, "--log-keys", logKeys)

	v := &visitor{t: t, w: w, p: p, trust: trust, secrets: secrets, user: hidden["the key of a user"]}
	receipt := v.all("at first")
	if hidden["a receipt"] = receipt; receipt == "" {
		t.Fatal("got no receipt")
	}
	secrets["the secret of receipts"] = node.Must("GET", "weir:secret").(string) // of takes that hold
	for what, text := range map[string]string{
		"a token instead of a hash":   "ops " + secrets["the token of ops"] + " scopes=read",
		"a token instead of a name":   secrets["the token of ops"] + " " + access.Hash(secrets["the token of ops"]) + " scopes=read",
		"only a token":                secrets["the token of ops"],
		"a hash instead of a name":    access.Hash(secrets["the token of ops"]) + " scopes=read",
		"only a hash":                 access.Hash(secrets["the token of ops"]),
		"a token behind the hash":     access.Line("ops", secrets["the token of ops"], access.Read, "") + " " + secrets["the token of ops"],
		"a token as an option":        access.Line("ops", secrets["the token of ops"], access.Read, "") + " token=" + secrets["the token of ops"],
		"a token as a scope":          "ops " + access.Hash(secrets["the token of ops"]) + " scopes=" + secrets["the token of ops"],
		"a hash as a namespace":       "ops " + access.Hash(secrets["the token of ops"]) + " scopes=read namespace=" + access.Hash(secrets["the token of ops"]),
		"a token as a namespace":      "ops " + access.Hash(secrets["the token of ops"]) + " scopes=read namespace=" + secrets["the token of ops"],
		"a token that is there twice": access.Line("one", secrets["the token of ops"], access.Read, "") + "\n" + access.Line("two", secrets["the token of ops"], access.Read, ""),
		"the TLS key":                 pem,
	} {
		w.refused(t, v, "tokens", what, func() { write(tokens, text+"\n") })
	}
	write(tokens, lines)
	for what, text := range map[string]string{
		"rules that cannot be read": "rules: [{name: x, limit: 1, window: 1h, per: [user], when: {user: {in: {file: " + tokens + "}}}}, {",
		"addresses of a key":        "rules: [{name: x, limit: 1, window: 1h, per: [user], when: {ip: {cidr: {file: " + key + "}}}}]\n",
		"a key as rules":            pem,
		"tokens as rules":           lines,
	} {
		w.refused(t, v, "rules", what, func() { write(rules, text) })
	}
	write(rules, secretRules)
	for what, text := range map[string]string{"half a key": pem[:100], "no key": "swordfish\n" + pem[28:]} {
		w.refused(t, v, "certificate", what, func() { write(key, text) })
	}
	write(key, pem)

	// The password is another one, then Redis fails, then nothing answers.
	node.Must("ACL", "SETUSER", "weir", "resetpass", ">another")
	node.Must("CLIENT", "KILL", "USER", "weir")
	v.all("with a wrong password")
	node.Must("ACL", "SETUSER", "weir", ">"+secrets["the Redis password"], "-eval", "-evalsha", "-fcall", "-set")
	v.all("without rights")
	node.Kill()
	v.all("without a store")
	v.wrongTokens() // at the end: the address must wait afterwards

	w.hearProcess(t, "service", p, set)
	w.check(t, secrets, hidden, "service command line", "service output", "service log", "https", "admin", "gRPC", "RESP", "otlp /v1/traces", "otlp /v1/metrics")
}

// refused writes a file with a fault, and waits until the log tells that the service has
// refused it.
func (w *witness) refused(t *testing.T, v *visitor, kind, what string, write func()) {
	t.Helper()
	told := func() int { return strings.Count(v.p.logs.String(), kind+" refused") }
	before := told()
	write()
	v.reload(v.secrets["WEIR_TOKEN"])
	redistest.Eventually(t, what+" is refused as "+kind, func() bool { return told() > before })
}

// exports returns the lines of a shell that set variables.
func exports(variables map[string]string) string {
	var b strings.Builder
	for name, value := range variables {
		fmt.Fprintf(&b, "export %s='%s'; ", name, value)
	}
	return b.String()
}

// printed returns an address that the process has printed.
func (p *process) printed(t *testing.T, of string) string {
	t.Helper()
	pattern := regexp.MustCompile(`(?m)^` + of + ` (?:[a-z0-9]+://)?(\S+)$`)
	redistest.Eventually(t, "the address is printed", func() bool { return pattern.MatchString(p.out.String()) })
	return pattern.FindStringSubmatch(p.out.String())[1]
}
