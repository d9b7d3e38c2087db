package pgstore_test

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
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/internal/pgtest"
	"github.com/weirhq/weir/store/pgstore"
)

// guide returns the blocks of a language in docs/guides/postgres.md.
func guide(t *testing.T, language string) (blocks []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/guides/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		blocks = append(blocks, m[1])
	}
	if len(blocks) == 0 {
		t.Fatalf("the guide has no %s", language)
	}
	return blocks
}

// openAs opens a store as a user of a server.
func openAs(t *testing.T, n *pgtest.Node, user string) *pgstore.Store {
	t.Helper()
	s := openURL(t, strings.Replace(n.URL("timeout=10s"), pgtest.User+"@", user+"@", 1))
	return s
}

// The users that the guide creates have the rights that they need: one that makes the tables, and
// one that uses tables which were made before.
func TestGuideRights(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	blocks := guide(t, "sql")
	// The server's superuser has the guide's name already.
	name := regexp.MustCompile(`\bweir\b`)
	run := func(i int) { n.Must(name.ReplaceAllString(blocks[i], "limits")) }
	run(0)
	if _, err := take(t, openAs(t, n, "limits"), "ann"); err != nil {
		t.Fatal(err)
	}
	run(1)
	s := openAs(t, n, "app")
	for _, key := range []string{"ann", "bob"} {
		if _, err := take(t, s, key); err != nil {
			t.Fatal(err)
		}
	}
	if got := used(t, s, "ann"); got != 2 {
		t.Errorf("got %d hits, want those of both users", got)
	}
	n.Must("UPDATE limits.weir_counters SET expires = 0")
	pgtest.Eventually(t, "expired rows are gone", func() bool { return n.Must("SELECT count(*) FROM limits.weir_counters") == "0" })
	if strings.Contains(n.Log(), "denied") {
		t.Errorf("the server's log has a right that is missing:\n%s", n.Log())
	}
}

// Behind pgbouncer calls are decided in transactions that share connections to the server. If it drops the settings of weir, a
// check says so.
func TestGuideBouncer(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string][]string{
		"refuses settings": nil,
		"drops settings":   {"ignore_startup_parameters = default_transaction_isolation,plan_cache_mode,enable_seqscan,jit,idle_in_transaction_session_timeout,lock_timeout,row_security,synchronous_commit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := pgtest.Server(t)
			addr := n.Bouncer(settings...)
			var all sync.WaitGroup
			for range 3 {
				s := openURL(t, fmt.Sprintf("postgres://%s@%s/postgres?sslmode=disable&timeout=2m", pgtest.User, addr))
				for caller := range 4 {
					all.Go(func() {
						for range 30 {
							if _, err := take(t, s, fmt.Sprint("key", caller%3)); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
			}
			all.Wait()
			s := openURL(t, fmt.Sprintf("postgres://%s@%s/postgres?sslmode=disable&timeout=2m", pgtest.User, addr))
			if got := level(t, s, "proxy"); strings.Contains(got, "idle_in_transaction_session_timeout is 0") != (settings != nil) {
				t.Errorf("got %q", got)
			}
			s = openAs(t, n, pgtest.User)
			for key, want := range map[string]int64{"key0": 100, "key1": 90, "key2": 90} {
				if got := used(t, s, key); got != want {
					t.Errorf("%s: got %d hits, want %d", key, got, want)
				}
			}
		})
	}
}

// Two stores with different statements, such as those of different durability, run their own ones behind pgbouncer, which
// gives a connection that one has prepared its statements on to the other.
func TestStatementsBehindBouncer(t *testing.T) {
	t.Parallel()
	n := pgtest.Server(t)
	addr := n.Bouncer("default_pool_size = 2")
	open := func(durability string) *pgstore.Store {
		t.Helper()
		s, err := pgstore.Open(t.Context(), fmt.Sprintf("postgres://%s@%s/postgres?sslmode=disable&timeout=10s&connections=1&durability=%s", pgtest.User, addr, durability))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	other, err := pgconn.Connect(t.Context(), fmt.Sprintf("postgres://%s@%s/postgres?sslmode=disable", pgtest.User, addr))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(t.Context())
	run := func(sql string) {
		t.Helper()
		if err := other.Exec(t.Context(), sql).Close(); err != nil {
			t.Fatal(err)
		}
	}
	open("async")
	n.Must(`CREATE TABLE written (synchronous text);
		CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN INSERT INTO written VALUES (current_setting(''synchronous_commit'')); RETURN new; END';
		CREATE TRIGGER note BEFORE UPDATE ON weir_counters FOR EACH ROW EXECUTE FUNCTION note()`)
	run("BEGIN") // on the connection that has the statements, so that the second store prepares its own on the other one
	synchronous := open("sync")
	run("COMMIT")
	for range 10 {
		if _, err := take(t, synchronous, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.Must("SELECT string_agg(DISTINCT synchronous, ' ') FROM written"); got != "on" {
		t.Errorf("the store with durability=sync wrote with synchronous_commit %s", got)
	}
}

// A store verifies the server's certificate, and logs in with a password from a file.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certificate, key := selfSigned(t)
	other, _ := selfSigned(t)
	n := pgtest.Server(t)
	n.Write("server.crt", certificate)
	n.Write("server.key", key)
	n.Write("pg_hba.conf", "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n")
	n.Must("ALTER ROLE " + pgtest.User + " PASSWORD 'a/b@c%'")
	n.Must("ALTER SYSTEM SET ssl = on")
	n.Must("SELECT pg_reload_conf()")
	pgtest.Eventually(t, "TLS is on", func() bool { return n.Must("SHOW ssl") == "on" })
	at := func(options ...string) string {
		return fmt.Sprintf("postgres://%s@%s/postgres?timeout=10s&%s", pgtest.User, n.Addr(), strings.Join(options, "&"))
	}
	ca := "sslrootcert=" + url.QueryEscape(write("ca.pem", certificate))
	password := "password_file=" + url.QueryEscape(write("password", "a/b@c%\n"))
	s := openURL(t, at("sslmode=verify-full", ca, password))
	if _, err := take(t, s, "ann"); err != nil {
		t.Error(err)
	}
	if got := n.Must("SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'weir'"); got != "t" {
		t.Errorf("got TLS on all connections %s, want t", got)
	}
	for _, c := range []struct{ name, url, want string }{
		{"another authority", at("sslmode=verify-full", "sslrootcert="+url.QueryEscape(write("other.pem", other)), password), "certificate"},
		{"no TLS", at("sslmode=disable", password), "no encryption"},
		{"another password", at("sslmode=verify-full", ca, "password_file="+url.QueryEscape(write("wrong", "secret"))), "password authentication failed"},
		{"another name", strings.Replace(at("sslmode=verify-full", ca, password), "127.0.0.1", "localhost", 1), "localhost"},
	} {
		if err := refusalOf(t, c.url); !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %q, without the password", c.name, err, c.want)
		}
	}
}

// selfSigned returns a certificate for 127.0.0.1 and its key.
func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "postgres"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return text("CERTIFICATE", der), text("PRIVATE KEY", private)
}
