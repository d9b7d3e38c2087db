package rule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

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
	values := make([]string, set.Compiled().Width())
	for _, name := range []string{"ip", "peer"} {
		at, _ := set.Compiled().Attribute(name)
		values[at] = address
	}
	set.Compiled().Complete(values)
	return values
}

// TestNetworksOfOthers: the networks of an attribute that is not an address have one spelling, too, and
// its own value stays.
func TestNetworksOfOthers(t *testing.T) {
	t.Parallel()
	set, err := rule.New([]rule.Rule{
		{Name: "nets", Per: []string{"peer"}, Networks: map[string]rule.Network{"peer": {V6: 64}}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour)},
		{Name: "raw", Per: []string{"peer"}, Quota: &rule.Quota{Value: 1}, Window: window.Sliding(time.Hour)},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for address, network := range map[string]string{"[2001:DB8::1]:80": "2001:db8::/64", "::ffff:192.0.2.1": "192.0.2.1", "192.0.2.1:80": "192.0.2.1"} {
		values := make([]string, set.Compiled().Width())
		values[0] = address
		set.Compiled().Complete(values)
		if nets, raw := set.Compiled().ReadableKey(0, values), set.Compiled().ReadableKey(1, values); nets != network || raw != address {
			t.Errorf("got network %s of %s, want %s of %s", nets, raw, network, address)
		}
	}
}

func TestAddressesAreKeys(t *testing.T) {
	t.Parallel()
	set := addressSet(t)
	if got := set.Compiled().Addresses(); len(got) != 1 || got[0] != "ip" {
		t.Errorf("got addresses %q, want ip, the one that rules use", got)
	}
	plain := valuesOf(set, "2001:db8::1")
	for _, other := range []string{"2001:DB8::1", "[2001:db8:0::1]:80"} {
		values := valuesOf(set, other)
		if set.Compiled().ReadableKey(0, values) != "2001:db8::1" || string(set.Compiled().AppendKey(nil, 0, values)) != string(set.Compiled().AppendKey(nil, 0, plain)) {
			t.Errorf("%s: got key %s, want that of 2001:db8::1", other, set.Compiled().ReadableKey(0, values))
		}
		if got := set.Compiled().ReadableKey(1, values); got != "2001:db8::/64" {
			t.Errorf("%s: got key %s, want the network", other, got)
		}
		if got := set.Compiled().ReadableKey(3, values); got != other {
			t.Errorf("%s: got key %s of another attribute, want it unchanged", other, got)
		}
		if got := set.Compiled().Match(values, nil, false); len(got) != 4 && len(got) != 3 || got[len(got)-1] != 2 {
			t.Errorf("%s: got matches %v, want the rule for this address", other, got)
		}
	}
	if set.Compiled().ID(0) == set.Compiled().ID(1) {
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
	values := make([]string, set.Compiled().Width())
	at, _ := set.Compiled().Attribute("ip")
	if n := testing.AllocsPerRun(100, func() {
		values[at] = "192.0.2.77"
		set.Compiled().Complete(values)
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}
