package rule_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

func TestCanonicalAddress(t *testing.T) {
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
		got, ok := rule.CanonicalAddress(text)
		if want == "" {
			if ok || got != text {
				t.Errorf("%q: got %q, %v, want no address", text, got, ok)
			}
		} else if got != want || !ok {
			t.Errorf("%q: got %q, %v, want %q", text, got, ok, want)
		}
	}
}

// FuzzCanonicalAddress checks that the canonical spelling is that of netip, that it
// is its own, and that a port makes no difference.
func FuzzCanonicalAddress(f *testing.F) {
	for _, text := range []string{"9.9.9.9", "::ffff:9.9.9.9", "[2001:DB8::1%a]:80", "009.9.9.9", "1.2.3.4:5", "[::]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := rule.CanonicalAddress(text)
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
		if again, ok := rule.CanonicalAddress(got); again != got || !ok {
			t.Fatalf("%q: got %q, whose canonical spelling is %q %v", text, got, again, ok)
		}
		with := got + ":65535"
		if strings.Contains(got, ":") {
			with = "[" + got + "]:65535"
		}
		if again, ok := rule.CanonicalAddress(with); again != got || !ok {
			t.Fatalf("%q: got %q %v, want %q", with, again, ok, got)
		}
		for _, n := range []rule.Network{{V4: 8, V6: 64}, {V6: 1}, {V4: 32, V6: 128}} {
			of := n.Of(text)
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

func TestNetwork(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		n          rule.Network
		text, want string
	}{
		{rule.Network{V6: 64}, "2001:db8::1:2:3:4", "2001:db8::/64"},
		{rule.Network{V6: 64}, "[2001:DB8::1]:443", "2001:db8::/64"},
		{rule.Network{V6: 64}, "::ffff:9.9.9.9", "9.9.9.9"},
		{rule.Network{V4: 24}, "9.9.9.9:80", "9.9.9.0/24"},
		{rule.Network{V4: 24}, "2001:db8::1", "2001:db8::1"},
		{rule.Network{V4: 24, V6: 64}, "009.9.9.9", "009.9.9.9"},
		{rule.Network{V4: 24, V6: 64}, "", ""},
	} {
		if got := tc.n.Of(tc.text); got != tc.want {
			t.Errorf("%v of %q: got %q, want %q", tc.n, tc.text, got, tc.want)
		}
	}
}

// addressSet returns a set with an address, ip, and a key of its networks.
func addressSet(t testing.TB) *rule.Set {
	t.Helper()
	set, err := rule.New([]rule.Rule{
		{Name: "all", Per: []string{"ip"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour)},
		{Name: "nets", Per: []string{"ip"}, Networks: map[string]rule.Network{"ip": {V6: 64}}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour)},
		{Name: "one", When: []rule.Condition{{Attribute: "ip", Test: rule.Equal("2001:DB8::1")}}, Then: rule.Deny},
		{Name: "raw", Per: []string{"peer"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour)},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if set, err = set.WithAddresses("ip", "other"); err != nil {
		t.Fatal(err)
	}
	return set
}

// valuesOf returns the vector of a request with an address in ip and peer.
func valuesOf(set *rule.Set, address string) []string {
	values := make([]string, set.Width())
	for _, name := range []string{"ip", "peer"} {
		at, _ := set.Attribute(name)
		values[at] = address
	}
	set.Complete(values)
	return values
}

func TestAddressesAreKeys(t *testing.T) {
	t.Parallel()
	set := addressSet(t)
	if got := set.Addresses(); len(got) != 1 || got[0] != "ip" {
		t.Errorf("got addresses %q, want ip, the one that rules use", got)
	}
	plain := valuesOf(set, "2001:db8::1")
	for _, other := range []string{"2001:DB8::1", "[2001:db8:0::1]:80"} {
		values := valuesOf(set, other)
		if set.Key(0, values) != "2001:db8::1" || string(set.AppendKey(nil, 0, values)) != string(set.AppendKey(nil, 0, plain)) {
			t.Errorf("%s: got key %s, want that of 2001:db8::1", other, set.Key(0, values))
		}
		if got := set.Key(1, values); got != "2001:db8::/64" {
			t.Errorf("%s: got key %s, want the network", other, got)
		}
		if got := set.Key(3, values); got != other {
			t.Errorf("%s: got key %s of another attribute, want it unchanged", other, got)
		}
		if got := set.Match(values, nil); len(got) != 4 && len(got) != 3 || got[len(got)-1] != 2 {
			t.Errorf("%s: got matches %v, want the rule for this address", other, got)
		}
	}
	if set.ID(0) == set.ID(1) {
		t.Error("got one identity for keys of addresses and of networks")
	}
}

func TestNetworkFaults(t *testing.T) {
	t.Parallel()
	for want, networks := range map[string]map[string]rule.Network{
		`per: "ip" names no bits, want v4, v6 or both`: {"ip": {}},
		`per: "ip" v4 is 33, want 1 to 32 bits`:        {"ip": {V4: 33}},
		`per: "ip" v6 is -1, want 1 to 128 bits`:       {"ip": {V6: -1}},
		`per: "peer" has a network and is not in per`:  {"peer": {V6: 64}},
	} {
		_, err := rule.New([]rule.Rule{{Name: "r", Per: []string{"ip"}, Networks: networks, Window: window.Cells(time.Hour, 2)}}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := addressSet(t).WithAddresses("ip", "", "ip"); err == nil || !strings.Contains(err.Error(), "addresses[1]: empty") || !strings.Contains(err.Error(), "addresses[2]") {
		t.Errorf("got %v, want faults of an empty name and of a repetition", err)
	}
}

// A canonical address costs no memory.
func TestCompleteAllocatesNothing(t *testing.T) {
	set, err := addressSet(t).WithAddresses("ip")
	if err != nil {
		t.Fatal(err)
	}
	values := make([]string, set.Width())
	at, _ := set.Attribute("ip")
	if n := testing.AllocsPerRun(100, func() {
		values[at] = "192.0.2.77"
		set.Complete(values)
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}
