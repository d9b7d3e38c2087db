package clientaddr_test

import (
	"testing"

	"github.com/weirhq/weir/internal/clientaddr"
)

func TestPeerGroup(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.7:80":          "192.0.2.7",
		"192.0.2.7":             "192.0.2.7",
		"[2001:db8::7]:80":      "2001:db8::/64",
		"[2001:db8::7]":         "2001:db8::/64",
		"2001:db8::7":           "2001:db8::/64", // as middleware that reads a header sets RemoteAddr
		"2001:db8:1:2:3:4:5:6":  "2001:db8:1:2::/64",
		"[fe80::7%eth0]:80":     "fe80::/64",
		"fe80::7%eth0":          "fe80::/64",
		"[::ffff:192.0.2.7]:80": "192.0.2.7",
		"::ffff:192.0.2.7":      "192.0.2.7",
		"::1":                   "::/64",
		"":                      "",
		"@":                     "",
		":80":                   "",
		"]:80":                  "",
		"::":                    "::/64",
		"unknown":               "",
	} {
		if got, ok := clientaddr.PeerGroup(address); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %t, want %q", address, got, ok, want)
		}
	}
}
