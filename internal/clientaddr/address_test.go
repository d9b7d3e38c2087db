package clientaddr_test

import (
	"strings"
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

func TestClient(t *testing.T) {
	t.Parallel()
	p, err := clientaddr.NewProxies([]string{"10.0.0.0/8", "2001:db8::/32", "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		peer  string
		lines []string
		want  string
	}{
		{"10.0.0.1:80", []string{"9.9.9.9"}, "9.9.9.9"},
		{"10.0.0.1:80", []string{"1.1.1.1, 9.9.9.9"}, "9.9.9.9"},               // the first one is forged
		{"10.0.0.1:80", []string{"1.1.1.1, 9.9.9.9, 10.2.2.2"}, "9.9.9.9"},     // two proxies
		{"10.0.0.1:80", []string{"1.1.1.1", "9.9.9.9", "10.2.2.2"}, "9.9.9.9"}, // as several lines
		{"10.0.0.1:80", []string{"9.9.9.9:4711, [2001:db8::1]:80"}, "9.9.9.9"},
		{"10.0.0.1:80", []string{"10.3.3.3, 10.2.2.2"}, "10.3.3.3"}, // all are trusted
		{"10.0.0.1:80", []string{"9.9.9.9, unknown, 10.2.2.2"}, "10.2.2.2"},
		{"10.0.0.1:80", []string{"unknown"}, "10.0.0.1"},
		{"10.0.0.1:80", []string{"10.0.0.2,,"}, "10.0.0.2"},
		{"10.0.0.1:80", nil, "10.0.0.1"},
		{"8.8.8.8:80", []string{"9.9.9.9"}, "8.8.8.8"}, // not through a proxy
		{"[2001:db8::5]:80", []string{"2001:DB9::1"}, "2001:db9::1"},
		{"[::ffff:10.0.0.1]:80", []string{"9.9.9.9"}, "9.9.9.9"},
		{"@", []string{"9.9.9.9"}, "9.9.9.9"},
	} {
		if got := p.Client(tc.peer, tc.lines); got != tc.want {
			t.Errorf("%s, %q: got %s, want %s", tc.peer, tc.lines, got, tc.want)
		}
	}
	p, err = clientaddr.NewProxies([]string{"::ffff:10.0.0.0/104", "::ffff:192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	for peer, want := range map[string]string{
		"10.0.0.1:80": "9.9.9.9", "[::ffff:10.0.0.1]:80": "9.9.9.9", "192.0.2.1:80": "9.9.9.9",
		"11.0.0.1:80": "11.0.0.1", "192.0.2.2:80": "192.0.2.2", "[::1]:80": "::1",
	} {
		if got := p.Client(peer, []string{"9.9.9.9"}); got != want {
			t.Errorf("%s behind networks written as IPv6: got %s, want %s", peer, got, want)
		}
	}
	var none *clientaddr.Proxies
	for lines, want := range map[string]string{
		"": "", "1.1.1.1|2.2.2.2, 9.9.9.9": "9.9.9.9", "[2001:DB8::1]:80": "2001:db8::1",
		"unix:": "", "unknown": "", "9.9.9.9, unknown": "", "9.9.9.9,": "",
	} {
		if got := none.Client("8.8.8.8:80", strings.Split(lines, "|")); got != want {
			t.Errorf("%q: got %s, want the last one if it is an address, %s", lines, got, want)
		}
	}
	if got := none.Client("8.8.8.8:80", nil); got != "" {
		t.Errorf("without a header: got %s, want none", got)
	}
	if _, err := clientaddr.NewProxies([]string{"10.0.0.0/33"}); err == nil {
		t.Error("got no error for a network that is none")
	}
}
