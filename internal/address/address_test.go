package address_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/address"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"9.9.9.9":              "9.9.9.9",
		" 9.9.9.9\t":           "9.9.9.9",
		"9.9.9.9:1234":         "9.9.9.9",
		"::ffff:9.9.9.9":       "9.9.9.9",
		"::ffff:909:909":       "9.9.9.9",
		"[::ffff:9.9.9.9]:80":  "9.9.9.9",
		"2001:db8::1":          "2001:db8::1",
		"2001:DB8:0:0:0:0:0:1": "2001:db8::1",
		"2001:0db8::0001":      "2001:db8::1",
		"[2001:db8::1]":        "2001:db8::1",
		"[2001:db8::1]:443":    "2001:db8::1",
		"fe80::1%eth0":         "fe80::1",
		"[fe80::1%25eth0]:443": "fe80::1",
		"::":                   "::",
		// What follows is no address, and stays as it is.
		"009.9.9.9":        "",
		"9.9.9":            "",
		"9.9.9.9:":         "",
		"9.9.9.9:65536":    "",
		"9.9.9.9:80:80":    "",
		"[9.9.9.9]":        "",
		"[2001:db8::1":     "",
		"[2001:db8::1]x":   "",
		"[2001:db8::1]:x":  "",
		"2001:db8::1/64":   "",
		"9.9.9.9, 8.8.8.8": "",
		"167772161":        "",
		"0x9.9.9.9":        "",
		"unknown":          "",
		"":                 "",
	} {
		got, ok := address.Canonical(text)
		if want == "" {
			if ok || got != text {
				t.Errorf("%q: got %q, %v, want no address", text, got, ok)
			}
		} else if got != want || !ok {
			t.Errorf("%q: got %q, %v, want %q", text, got, ok, want)
		}
	}
}

// FuzzCanonical checks that the canonical spelling is that of netip, that it
// is its own, and that a port makes no difference.
func FuzzCanonical(f *testing.F) {
	for _, text := range []string{"9.9.9.9", "::ffff:9.9.9.9", "[2001:DB8::1%a]:80", "009.9.9.9", "1.2.3.4:5", "[::]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := address.Canonical(text)
		plain, err := netip.ParseAddr(strings.TrimSpace(text))
		if err == nil {
			if want := plain.Unmap().WithZone("").String(); got != want || !ok {
				t.Fatalf("%q: got %q %v, want %q", text, got, ok, want)
			}
		}
		if !ok {
			if got != text {
				t.Fatalf("%q: got %q, want it unchanged", text, got)
			}
			return
		}
		if again, ok := address.Canonical(got); again != got || !ok {
			t.Fatalf("%q: got %q, whose canonical spelling is %q %v", text, got, again, ok)
		}
		with := got + ":65535"
		if strings.Contains(got, ":") {
			with = "[" + got + "]:65535"
		}
		if again, ok := address.Canonical(with); again != got || !ok {
			t.Fatalf("%q: got %q %v, want %q", with, again, ok, got)
		}
		for _, n := range []struct{ v4, v6 int }{{8, 64}, {0, 1}, {32, 128}} {
			of := address.NetworkOf(got, n.v4, n.v6)
			if p, err := netip.ParsePrefix(of); err == nil {
				if !p.Contains(netip.MustParseAddr(got)) || p != p.Masked() {
					t.Fatalf("%q: got %q, want a network that contains %s", text, of, got)
				}
			} else if of != got {
				t.Fatalf("%q: got %q, want a network or %q", text, of, got)
			}
		}
	})
}

func TestNetworkOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		v4, v6     int
		text, want string
	}{
		{0, 64, "2001:db8::1:2:3:4", "2001:db8::/64"},
		{0, 64, "[2001:DB8::1]:443", "2001:db8::/64"},
		{0, 64, "::ffff:9.9.9.9", "9.9.9.9"},
		{24, 0, "9.9.9.9:80", "9.9.9.0/24"},
		{24, 0, "2001:db8::1", "2001:db8::1"},
		{24, 64, "009.9.9.9", "009.9.9.9"},
		{24, 64, "", ""},
	} {
		canonical, _ := address.Canonical(tc.text)
		if got := address.NetworkOf(canonical, tc.v4, tc.v6); got != tc.want {
			t.Errorf("v4/%d v6/%d of %q: got %q, want %q", tc.v4, tc.v6, tc.text, got, tc.want)
		}
	}
}
