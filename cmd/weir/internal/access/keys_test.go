package access_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/access"
)

// An address that shows ten wrong tokens in a minute is told to wait. A right token is accepted
// nevertheless, even one that was never shown before: behind a proxy all callers have one
// address, and after a restart nobody is known.
func TestWrongTokensAreSlowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := open(t, "", access.Own{Name: "ops", Token: "right", Scopes: access.All})
		slow := 0
		k.Slow = func(address string) {
			if slow++; address != "2001:db8::/64" {
				t.Errorf("got address %s, want its network", address)
			}
		}
		wrong := func(address string, want access.Reason, wait time.Duration) {
			t.Helper()
			_, err := k.Holder(access.Credentials{Token: "wrong", Shown: true, Address: address})
			if err == nil || err.Reason != want || err.RetryAfter != wait {
				t.Errorf("a wrong token from %s: got %+v, want %s and a wait of %v", address, err, want, wait)
			}
		}
		for i := range access.WrongTokens {
			// Neither the port nor the last 64 bits make another caller.
			wrong(fmt.Sprintf("[2001:db8::%x]:%d", i, 1000+i), access.Unknown, 0)
		}
		if slow != 1 {
			t.Errorf("got %d reports, want one", slow)
		}
		for range 3 {
			wrong("[2001:db8::9]:80", access.Slowed, access.WrongWindow)
			if _, err := k.Holder(access.Credentials{Token: "right", Shown: true, Address: "[2001:db8::9]:80"}); err != nil {
				t.Errorf("got %v for a right token at the address of wrong ones", err)
			}
		}
		wrong("[2001:db8:0:1::1]:80", access.Unknown, 0) // another network
		time.Sleep(access.WrongWindow)
		wrong("[2001:db8::9]:80", access.Unknown, 0)
	})
}

// The token of the variable WEIR_TOKEN can be one of the file, as that of a shell whose commands use it.
func TestFileSaysWhatItsTokensMay(t *testing.T) {
	t.Parallel()
	token := access.NewToken()
	k := open(t, tokensFile(t, access.Line("a", token, access.Read, "shop")+"\n"), access.Own{Name: "WEIR_TOKEN", Token: token, Scopes: access.All})
	h, err := k.Holder(access.Credentials{Token: token, Shown: true, Address: "192.0.2.1:80"})
	if err != nil || h.Scopes != access.Read || h.Namespace != "shop" {
		t.Errorf("got %+v, %v, want what its line says", h, err)
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	path := tokensFile(t, "a "+hashA+" scopes=read\n")
	k := open(t, path)
	reload := func(wantChanged, wantErr bool) {
		t.Helper()
		if changed, err := k.Reload(); changed != wantChanged || (err != nil) != wantErr {
			t.Errorf("got changed %v, error %v, want %v and %v", changed, err, wantChanged, wantErr)
		}
	}
	has := func(token string, want bool) {
		t.Helper()
		if _, err := k.Holder(access.Credentials{Token: token, Shown: true, Address: "192.0.2.1:1"}); (err == nil) != want {
			t.Errorf("%s: got %v, want known %v", token, err, want)
		}
	}
	reload(false, false)
	write(t, path, "a "+hashA+" scopes=reed\n")
	reload(true, true) // a fault changes nothing, and is returned as long as it is there
	reload(false, true)
	has("a", true)
	write(t, path, "")
	reload(true, true)
	has("a", true)
	write(t, path, "b "+hashB+" scopes=read\n")
	reload(true, false)
	has("a", false)
	has("b", true)
}

// A right token costs the hot path no memory.
func TestHolderAllocatesNothing(t *testing.T) {
	k := open(t, "", access.Own{Name: "ops", Token: "right", Scopes: access.All})
	if n := testing.AllocsPerRun(100, func() {
		if _, err := k.Holder(access.Credentials{Token: "right", Shown: true, Address: "192.0.2.1:1234"}); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

func BenchmarkHolder(b *testing.B) {
	k := open(b, "", access.Own{Name: "ops", Token: access.NewToken(), Scopes: access.All}, access.Own{Name: "me", Token: "right", Scopes: access.All})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Holder(access.Credentials{Token: "right", Shown: true, Address: "192.0.2.1:1234"}); err != nil {
			b.Fatal(err)
		}
	}
}
