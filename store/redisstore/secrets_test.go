package redisstore_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/receipt"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/redisstore"
	"github.com/weirhq/weir/window"
)

// sealing returns an engine on s with a rule that holds and one that does not.
func sealing(t *testing.T, s *redisstore.Store) *weir.Engine {
	t.Helper()
	return engineOn(t, s, 0, []rule.Rule{
		{Name: "tokens", Per: []string{"team"}, Quota: &rule.Quota{Value: 100}, Window: window.Sliding(time.Hour), Hold: time.Hour},
		{Name: "calls", Per: []string{"team"}, Quota: &rule.Quota{Value: 100}, Window: window.Sliding(time.Hour), Together: "team"},
	}...)
}

// counted returns what the rules have counted, and whether a hold was found.
func counted(t *testing.T, d weir.Decision, err error) (tokens, calls int64, held bool) {
	t.Helper()
	if err != nil || len(d.Usages) != 2 {
		t.Fatalf("got %+v and error %v", d, err)
	}
	return d.Usages[0].Used, d.Usages[1].Used, d.Usages[0].Held
}

// bytesOf returns the bytes that the text of r stands for.
func bytesOf(t *testing.T, r weir.Receipt) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(r.String())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// changed returns r with other bytes.
func changed(t *testing.T, r weir.Receipt, change func([]byte)) weir.Receipt {
	t.Helper()
	b := bytesOf(t, r)
	change(b)
	other, err := receipt.Parse(base64.RawURLEncoding.EncodeToString(b))
	if err != nil || other == r {
		t.Fatalf("got %v and error %v, want another receipt", other, err)
	}
	return other
}

// A receipt of one instance works at another one on the same prefix, and nowhere
// else. A receipt that a caller has changed finds nothing.
func TestReceiptsOfOtherInstances(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	url := "redis://" + n.Addr() + "?timeout=10s" // on a busy machine calls are slow
	here, there := sealing(t, openURL(t, url)), sealing(t, openURL(t, url))
	elsewhere := sealing(t, openURL(t, url+"&prefix=other"))
	r := weir.Request{Attributes: weir.Attributes("team", "red")}
	take := func() weir.Receipt {
		d, err := here.Take(t.Context(), r)
		if err != nil || !d.Allowed || d.Receipt.IsZero() {
			t.Fatalf("got %+v and error %v, want a receipt", d, err)
		}
		return d.Receipt
	}
	first, second := take(), take()
	forged := changed(t, second, func(b []byte) { copy(b[14:21], bytesOf(t, first)[14:21]) }) // the instant
	unsealed := changed(t, second, func(b []byte) { clear(b[len(b)-16:]) })
	for what, try := range map[string]func() (weir.Decision, error){
		"a receipt that was changed": func() (weir.Decision, error) { return there.Cancel(t.Context(), forged, r) },
		"a receipt without a seal":   func() (weir.Decision, error) { return there.Settle(t.Context(), unsealed, r) },
	} {
		d, err := try()
		if tokens, calls, held := counted(t, d, err); tokens != 2 || calls != 2 || held {
			t.Errorf("%s: got %d and %d used, held %v, want 2 and 2 and nothing held", what, tokens, calls, held)
		}
	}
	d, err := elsewhere.Cancel(t.Context(), second, r)
	if tokens, calls, held := counted(t, d, err); tokens != 0 || calls != 0 || held {
		t.Errorf("at another prefix: got %d and %d used, held %v, want nothing", tokens, calls, held)
	}
	for _, want := range []bool{true, false} {
		d, err := there.Cancel(t.Context(), second, r)
		if tokens, calls, held := counted(t, d, err); tokens != 1 || calls != 1 || held != want {
			t.Errorf("cancel: got %d and %d used, held %v, want 1 and 1, and %v", tokens, calls, held, want)
		}
	}
	d, err = there.Renew(t.Context(), first, r)
	if _, _, held := counted(t, d, err); !held {
		t.Errorf("renew: got %+v, want it held", d)
	}
}

// A store learns of a rotation from the first receipt that it does not know. Receipts
// of before are valid, until the secret is rotated again or their time is over.
func TestRotateSecret(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	url := "redis://" + n.Addr() + "?timeout=10s" // on a busy machine calls are slow
	one, two := openURL(t, url), openURL(t, url)
	here, there := sealing(t, one), sealing(t, two)
	r := weir.Request{Attributes: weir.Attributes("team", "red")}
	take := func(e *weir.Engine) weir.Receipt {
		d, err := e.Take(t.Context(), r)
		if err != nil || d.Receipt.IsZero() {
			t.Fatalf("got %+v and error %v, want a receipt", d, err)
		}
		return d.Receipt
	}
	holds := func(what string, e *weir.Engine, end weir.Receipt, want bool) {
		d, err := e.Settle(t.Context(), end, r)
		if _, _, held := counted(t, d, err); held != want {
			t.Errorf("%s: got held %v, want %v", what, held, want)
		}
	}
	rotate := func(s *redisstore.Store, keep time.Duration) {
		if err := s.RotateSecret(t.Context(), keep); err != nil {
			t.Fatal(err)
		}
	}
	before, late := take(there), take(there)
	rotate(one, time.Hour)
	after := take(here)
	if after.Take.Seal == before.Take.Seal || len(one.Secrets(false)) != 2 {
		t.Errorf("got %d secrets, want 2", len(one.Secrets(false)))
	}
	redistest.Eventually(t, "the other store may ask again", func() bool { return len(two.Secrets(true)) == 2 })
	holds("a receipt of after, there", there, after, true)
	holds("a receipt of before, here", here, before, true)
	holds("a receipt of before, at a store that opens now", sealing(t, openURL(t, url)), late, true)
	last, revoked := take(here), take(there)
	rotate(two, time.Hour)
	holds("a receipt of the secret before", there, last, true)
	third := take(here) // has not learned of the second rotation, if that was not long ago
	holds("a receipt of a store that has not learned yet", there, third, true)
	rotate(two, 0)
	holds("a receipt of the secret before that", there, revoked, false)
	fourth := take(there)
	redistest.Eventually(t, "the other store may ask again", func() bool { return len(one.Secrets(true)) == 1 })
	holds("a receipt whose time is over", there, third, false)
	holds("a receipt of after the third rotation", here, fourth, true)
	n.Must("FLUSHALL")
	redistest.Eventually(t, "the secret is in Redis again", func() bool { two.Secrets(true); return n.Must("EXISTS", "weir:secret") == int64(1) })
	if got := secretsOf(t, openURL(t, url)); !slices.Equal(got, two.Secrets(false)) {
		t.Error("a server that has lost its keys got another secret")
	}
	n.Must("SET", "weir:secret", "swordfish")
	if err := one.RotateSecret(t.Context(), time.Hour); err == nil || n.Must("GET", "weir:secret") != "swordfish" {
		t.Errorf("at the key of another program: got error %v", err)
	}
}

// secretsOf returns the secrets of a store. It waits until they are read, which is tried for a second at a time.
func secretsOf(t *testing.T, s *redisstore.Store) (all [][16]byte) {
	t.Helper()
	redistest.Eventually(t, "the secret is read", func() bool {
		all = slices.Clone(s.Secrets(false))
		return len(all) > 0
	})
	return all
}

// A server that has lost its keys gets the secret again from a store that knows it.
// Stores that find another secret accept receipts under both.
func TestSecretIsLost(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
	before := secretsOf(t, s)
	if len(before) != 1 {
		t.Fatalf("got %d secrets, want 1", len(before))
	}
	n.Must("FLUSHALL")
	redistest.Eventually(t, "the secret is in Redis again", func() bool { s.Secrets(true); return n.Must("EXISTS", "weir:secret") == int64(1) })
	if got := secretsOf(t, openURL(t, "redis://"+n.Addr()+"?timeout=20s")); !slices.Equal(got, before) {
		t.Errorf("after the loss: got another secret")
	}
	n.Must("FLUSHALL")
	if err := s.RotateSecret(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	got := s.Secrets(false)
	if len(got) != 2 || got[1] != before[0] {
		t.Fatalf("rotated after a loss: got %d secrets, want a new one and the one before", len(got))
	}
	before = slices.Clone(got[:1]) // s could read its secret again, and with that restore it
	n.Must("FLUSHALL")
	other := secretsOf(t, openURL(t, "redis://"+n.Addr()+"?timeout=20s")) // made it before s looked
	redistest.Eventually(t, "the other secret is known", func() bool { return s.Secrets(true)[0] == other[0] })
	if got := s.Secrets(false); len(got) != 2 || got[1] != before[0] {
		t.Errorf("after a loss that another store mended: got %d secrets, want the new one and the old one", len(got))
	}
}

// A store that was opened while Redis was unavailable reads the secret before its
// first take that holds. Receipts of before that work in their own process.
func TestSecretOutOfReach(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	n.Kill()
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
	if got := s.Secrets(false); len(got) != 0 {
		t.Errorf("got %d secrets of a server that does not run", len(got))
	}
	n.Restart()
	redistest.Eventually(t, "the secret is read", func() bool { return len(s.Secrets(false)) == 1 })
	if got := secretsOf(t, openURL(t, "redis://"+n.Addr()+"?timeout=20s")); !slices.Equal(got, s.Secrets(false)) {
		t.Errorf("got another secret at another store")
	}
}

// The receipts of an engine that has never reached Redis work at other engines when Redis is back.
func TestReceiptsOfAnOutage(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	url := "redis://" + n.Addr() + "?timeout=20s"
	there := sealing(t, openURL(t, url))
	n.Kill()
	here := sealing(t, openURL(t, url))
	r := weir.Request{Attributes: weir.Attributes("team", "red")}
	var receipts []weir.Receipt
	for range 2 {
		d, err := here.Take(t.Context(), r)
		if err != nil || !d.Degraded || d.Receipt.IsZero() {
			t.Fatalf("got %+v and error %v, want a receipt of local memory", d, err)
		}
		receipts = append(receipts, d.Receipt)
	}
	n.Restart()
	for i, e := range []*weir.Engine{there, sealing(t, openURL(t, url))} {
		redistest.Eventually(t, "the hold is found", func() bool {
			d, err := e.Renew(t.Context(), receipts[i], r)
			return err == nil && !d.Degraded && d.Usages[0].Held
		})
	}
}

// A full Redis tells its secret to a store that is opened then.
func TestSecretOfFullRedis(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t, "--maxmemory-policy", "noeviction")
	url := "redis://" + n.Addr() + "?timeout=20s"
	want := secretsOf(t, openURL(t, url))
	n.Must("CONFIG", "SET", "maxmemory", "1")
	s := openURL(t, url)
	redistest.Eventually(t, "the secret is read", func() bool { return slices.Equal(s.Secrets(false), want) })
}

// A value that is not a secret is not changed. Receipts then work in one process.
func TestSecretOfAnotherProgram(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	n.Must("SET", "weir:secret", "swordfish")
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
	if got := s.Secrets(false); len(got) != 0 || n.Must("GET", "weir:secret") != "swordfish" {
		t.Errorf("got %d secrets, want none, and the value as it was", len(got))
	}
	e, r := sealing(t, s), weir.Request{Attributes: weir.Attributes("team", "red")}
	d, err := e.Take(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	d, err = e.Settle(t.Context(), d.Receipt, r)
	if _, _, held := counted(t, d, err); !held {
		t.Errorf("settle: got %+v, want it held", d)
	}
}

// The page of the secret's key does not show the secret, and the doctor knows it.
func TestInspectTheSecret(t *testing.T) {
	t.Parallel()
	n := redistest.Server(t)
	s := openURL(t, "redis://"+n.Addr()+"?timeout=20s")
	connected(t, s, 1)
	secretsOf(t, s)
	page, err := s.Inspect(t.Context(), "weir:secret")
	if want := "key      weir:secret\nkind     secret under which receipts are sealed, version 1\n"; err != nil || page != want {
		t.Errorf("got error %v and page\n%s\nwant\n%s", err, page, want)
	}
	findings, err := s.Diagnose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Check == "prefix" && !strings.Contains(f.Seen, "no keys of other programs among the 1 seen") {
			t.Errorf("got %+v, want no key of another program", f)
		}
	}
}
