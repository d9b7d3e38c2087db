package pgstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/store/pgstore"
)

func TestParse(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("swordfish\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"postgres://weir:swordfish@db1:6432,db2/app?target_session_attrs=read-write":       "postgres://weir@db1:6432,db2:5432/app",
		"postgresql://weir@db/app?sslmode=disable&timeout=20ms&password_file=" + file:      "postgres://weir@db:5432/app",
		"postgres://db/app?lock_timeout=1s&statement_timeout=2s&application_name=a":        "",
		"postgres://weir@[::1]/app?sslmode=disable&durability=sync&connections=2&prefix=a": "postgres://weir@[::1]:5432/app",
	} {
		if c, err := pgstore.Parse(url); err != nil || want != "" && c.String() != want {
			t.Errorf("%s: got %v, %v, want %s", url, c, err, want)
		}
	}
	for url, want := range map[string]string{
		"redis://db":                              "store.scheme: want postgres://",
		"postgres://weir:sword?fish@db/app":       "write / as %2F",
		"postgres://weir:swordfish@db:port/app":   "store: ",
		"postgres://db/app?timeout=0s":            "store.timeout: ",
		"postgres://db/app?durability=asynk":      "want one of async, sync, unlogged: did you mean \"async\"?",
		"postgres://db/app?connections=0":         "store.connections: ",
		"postgres://db/app?in_flight=many":        "store.in_flight: ",
		"postgres://db/app?durabilty=sync":        "store.durabilty: unknown option: did you mean \"durability\"?",
		"postgres://db/app?sslmod=disable":        "did you mean \"sslmode\"?",
		"postgres://db/app?prefix=W-1":            "store.prefix: ",
		"postgres://db/app?prefix=a&prefix=b":     "store.prefix: given twice",
		"postgres://db/app?sslmode=sometimes":     "sslmode",
		"postgres://db/app?password_file=/no/one": "store.password_file: ",
	} {
		_, err := pgstore.Parse(url)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "fish") {
			t.Errorf("%s: got %v, want %s", url, err, want)
		}
	}
}
