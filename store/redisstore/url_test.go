package redisstore_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/datatest"
	"github.com/weirhq/weir/store/redisstore"
)

// TestURLs runs testdata/urls.txt: what URLs mean, and what is wrong with bad
// ones.
func TestURLs(t *testing.T) {
	t.Parallel()
	datatest.RunTest(t, "testdata/urls.txt", func(_ *testing.T, d *datatest.TestData) string {
		var out strings.Builder
		for url := range strings.Lines(d.Input) {
			describe(&out, strings.TrimSuffix(url, "\n"))
		}
		return out.String()
	})
}

func describe(w io.Writer, url string) {
	c, err := redisstore.Parse(url)
	if err != nil {
		fmt.Fprintln(w, strings.ReplaceAll(err.Error(), "\n", "\n  "))
		return
	}
	fmt.Fprintf(w, "%v\n  ", c)
	fmt.Fprintln(w, redisstore.Details(c))
}

// FuzzParse checks that the parser never panics, that a config that it makes
// is whole, and neither a config as text nor an error repeats the password.
func FuzzParse(f *testing.F) {
	f.Add("redis", "ann", "sEcReT-pass", "localhost:6379/2?prefix=p&timeout=5ms")
	f.Add("redis+sentinel", "", "sEcReT-pass", "a:1,b/main?db=1&sentinel_password=x")
	f.Add("rediss+cluster", "", "sEcReT-pass", "[::1]:7000,a?server_name=b")
	f.Add("redis", "", "sEcR/eT?pass@", "host")
	f.Add("unix", "", "", "/run/redis.sock?db=3")
	f.Fuzz(func(t *testing.T, scheme, user, password, rest string) {
		const mark = "sEcReT"
		secret := mark + password
		for _, url := range []string{
			scheme + "://" + user + ":" + secret + "@" + rest,
			scheme + "://" + secret + "@" + rest, // no colon
			scheme + "://" + rest,
			secret,
		} {
			c, err := redisstore.Parse(url)
			var said string
			if err != nil {
				said = err.Error()
			} else {
				said = c.String()
				if !redisstore.Whole(c) {
					t.Errorf("%q: got half a config: %+v", url, c)
				}
			}
			// What stands where no password belongs may be repeated.
			if strings.Contains(said, mark) && !strings.Contains(user+rest, mark) && strings.Contains(url, ":"+secret) {
				t.Errorf("%q: the password is in %q", url, said)
			}
		}
	})
}

// A configuration that was not read from a URL is checked, too.
func TestConfigWithoutAddress(t *testing.T) {
	t.Parallel()
	_, err := redisstore.Config{Addrs: []string{""}}.Open(t.Context())
	if err == nil || !strings.Contains(err.Error(), "address") {
		t.Errorf("got error %v, want one about the address", err)
	}
}
