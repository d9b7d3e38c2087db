package rule_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// must returns the test of a constructor that can fail.
func must(t *testing.T) func(test rule.Test, err error) rule.Test {
	return func(test rule.Test, err error) rule.Test {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return test
	}
}

func list(t *testing.T, entries ...string) rule.Test {
	t.Helper()
	l, err := rule.In("staff", entries)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestHolds checks which values every test holds for.
func TestHolds(t *testing.T) {
	t.Parallel()
	must := must(t)
	n := func(f float64) *float64 { return &f }
	many := strings.Fields("a b c d e f g h i j k")
	for _, tt := range []struct {
		test     rule.Test
		yes, not []string
	}{
		{rule.Equal("a"), []string{"a"}, []string{"", "A", "a ", "aa"}},
		{rule.Equal("a", ""), []string{"a", ""}, []string{"b"}},
		{rule.Equal(), nil, []string{"", "a"}},
		{rule.Equal(many...), many, []string{"", "l", "ab"}},
		{rule.Present(), []string{"a", " "}, []string{""}},
		{rule.Absent(), []string{""}, []string{"a", " "}},
		{rule.Not(rule.Equal("a")), []string{"", "b"}, []string{"a"}},
		{rule.Not(rule.Within(rule.Range{})), []string{"", "x"}, []string{"5"}},
		{rule.All(), []string{"", "a"}, nil},
		{rule.All(rule.Present(), rule.Not(rule.Equal("a"))), []string{"b"}, []string{"", "a"}},

		{rule.Prefix("/api"), []string{"/api", "/api/x"}, []string{"", "/ap", "x/api"}},
		{rule.Suffix(".php"), []string{".php", "x.php"}, []string{"", "php", "x.php5"}},
		{must(rule.Pattern("b+")), []string{"b", "abba"}, []string{"", "a", "B"}},
		{must(rule.Pattern("^(?i)b+$")), []string{"b", "BB"}, []string{"ab"}},

		{rule.Within(rule.Range{}),
			[]string{"0", "5", "-5", "+5", "5.", ".5", "007", "1e3", "1E-3", "1e999", "-1e999"},
			[]string{"", " 5", "5 ", "NaN", "Inf", "-Infinity", "0x10", "1_000", "1,5", "1.2.3", ".", "-", "e3", "1e", "1e+", "1e5.5", "٣"}},
		{rule.Within(rule.Range{Above: n(5)}), []string{"5.1", "6", "1e1", "1e999"}, []string{"5", "4", "5.0", "-6", "NaN"}},
		{rule.Within(rule.Range{From: n(5)}), []string{"5", "5.0", "6", "5e0"}, []string{"4.9", "-1e999"}},
		{rule.Within(rule.Range{Below: n(0)}), []string{"-1", "-0.1", "-1e999"}, []string{"0", "-0", "1"}},
		{rule.Within(rule.Range{To: n(0)}), []string{"-1", "0", "-0"}, []string{"0.1"}},
		{rule.Within(rule.Range{Above: n(1), To: n(3)}), []string{"1.5", "3"}, []string{"1", "3.5", ""}},
		{rule.Within(rule.Range{From: n(1), Above: n(1), Below: n(3), To: n(3)}), []string{"2"}, []string{"1", "3"}},

		{list(t, "ann", "10.0.0.1", "10.1.0.0/16", "2001:DB8::/32", "1.2.3.4-5/x"),
			[]string{"ann", "10.0.0.1", "::ffff:10.0.0.1", "10.1.255.255", "2001:db8::5", "1.2.3.4-5/x"},
			[]string{"", "Ann", "10.0.0.2", "10.2.0.0", "2001:db9::", "10.1.0.0/16", "1.2.3.4"}},
		{list(t), nil, []string{"", "a", "10.0.0.1"}},

		{must(rule.Address()), nil, []string{"", "10.0.0.1"}},
		{must(rule.Address("10.0.0.1")), []string{"10.0.0.1", "::ffff:10.0.0.1", "::FFFF:a00:1"}, []string{"", "10.0.0.2", "::1", "010.0.0.1", " 10.0.0.1", "10.0.0.1:80"}},
		{must(rule.LooseAddress("10.0.0.1", "::1")),
			[]string{"10.0.0.1", "::ffff:10.0.0.1", "010.0.0.1", "10.000.-0.+1", "167772161", "+0167772161", "0:0::1"},
			[]string{"", "010.0.0.2", "167772162", "-167772161", "4462739457", "10.0.1", "0.167772161", "10.0.0.", "10.0.0.257", "0x0a000001", "1", " 10.0.0.1"}},
		{must(rule.LooseAddress()), nil, []string{"", "10.0.0.1", "010.0.0.1", "1"}},
		{must(rule.Address("::ffff:10.0.0.1")), []string{"10.0.0.1", "::ffff:a00:1"}, []string{"::a00:1"}},
		{must(rule.Address("fe80::1%eth0")), []string{"fe80::1", "FE80:0::1%wlan0"}, []string{"fe80::2"}},
		{must(rule.Address("10.0.0.0/8")), []string{"10.0.0.0", "10.255.255.255", "::ffff:10.1.1.1"}, []string{"9.255.255.255", "11.0.0.0", "::a00:1"}},
		{must(rule.Address("10.1.2.3/8")), []string{"10.200.0.1"}, []string{"11.0.0.1"}},
		{must(rule.Address("10.0.0.7/31")), []string{"10.0.0.6", "10.0.0.7"}, []string{"10.0.0.5", "10.0.0.8"}},
		{must(rule.Address("::ffff:10.0.0.0/104")), []string{"10.1.2.3"}, []string{"11.0.0.0"}},
		{must(rule.Address("0.0.0.0/0")), []string{"0.0.0.0", "255.255.255.255"}, []string{"::1", "::"}},
		{must(rule.Address("::/0")), []string{"::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}, []string{"10.0.0.1", "::ffff:10.0.0.1"}},
		{must(rule.Address("2001:db8::/33")), []string{"2001:db8:7fff:ffff::"}, []string{"2001:db8:8000::"}},
		{must(rule.Address("10.0.0.1-10.0.0.9")), []string{"10.0.0.1", "10.0.0.5", "10.0.0.9"}, []string{"10.0.0.0", "10.0.0.10"}},
		{must(rule.Address("2001:db8::1-2001:db8::ff")), []string{"2001:db8::80"}, []string{"2001:db8::100"}},
		{must(rule.Address("10.1.*.*")), []string{"10.1.0.0", "10.1.255.255", "::ffff:10.1.2.3"}, []string{"10.2.0.0", "::a01:1"}},
		{must(rule.Address("10.*.0.*")), []string{"10.0.0.0", "10.9.0.200"}, []string{"10.9.1.200", "11.9.0.200"}},
		{must(rule.Address("*.*.*.*")), []string{"1.2.3.4"}, []string{"::1", ""}},
		{must(rule.Address("10.0.0.5-10.0.0.20", "10.0.0.1-10.0.0.8", "10.0.0.6", "10.0.0.0/30", "::1", "9.*.*.1")),
			[]string{"10.0.0.0", "10.0.0.3", "10.0.0.8", "10.0.0.20", "::1", "9.8.7.1"},
			[]string{"10.0.0.21", "9.255.255.255", "::2", "::"}},
	} {
		for _, v := range tt.yes {
			if !tt.test.Holds(v) {
				t.Errorf("%s: got false for %q, want true", tt.test, v)
			}
		}
		for _, v := range tt.not {
			if tt.test.Holds(v) {
				t.Errorf("%s: got true for %q, want false", tt.test, v)
			}
		}
	}
}

func TestString(t *testing.T) {
	t.Parallel()
	must := must(t)
	five, nine := 5.0, 1e6
	for want, test := range map[string]rule.Test{
		"is one of [a b]": rule.Equal("a", "b"),
		"is one of [1 2 3 4 5 6 7 8 9 10 and 2 more]": rule.Equal(strings.Fields("1 2 3 4 5 6 7 8 9 10 11 12")...),
		"is present":                        rule.Present(),
		"is missing":                        rule.Absent(),
		"is not a":                          rule.Not(rule.Equal("a")),
		"is \"a b\"":                        rule.Equal("a b"),
		"is \"missing\"":                    rule.Equal("missing"),
		"is \"\"":                           rule.Equal(""),
		"is one of list staff":              list(t),
		"is a number":                       rule.Within(rule.Range{}),
		"is a number above 5 below 1000000": rule.Within(rule.Range{Above: &five, Below: &nine}),
		"is a number from 5 to 1000000":     rule.Within(rule.Range{From: &five, To: &nine}),
		"is an address, in any spelling, in [10.0.0.0/8]": must(rule.LooseAddress("10.0.0.0/8")),
		"is an address in [10.0.0.0/8 ::1]":               must(rule.Address("10.0.0.0/8", "::1")),
		`is text that starts with "/"`:                    rule.Prefix("/"),
		`is text that ends with ".php"`:                   rule.Suffix(".php"),
		`is text that matches "^a$"`:                      must(rule.Pattern("^a$")),
		`is present and text that starts with "/"`:        rule.All(rule.Present(), rule.Prefix("/")),
		`is not (present and text that starts with "/")`:  rule.Not(rule.All(rule.Present(), rule.Prefix("/"))),
		"is anything":                        rule.All(),
		"is not missing":                     rule.Not(rule.Absent()),
		"is not not a":                       rule.Not(rule.Not(rule.Equal("a"))),
		"is not an address in [10.1.*.*]":    rule.Not(must(rule.Address("10.1.*.*"))),
		"is a and not b and a number from 5": rule.All(rule.Equal("a"), rule.Not(rule.Equal("b")), rule.Within(rule.Range{From: &five})),
	} {
		if got := test.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestRefused checks that wrong patterns and entries are errors.
func TestRefused(t *testing.T) {
	t.Parallel()
	entries := func(entries ...string) error { _, err := rule.In("staff", entries); return err }
	address := func(p ...string) error { _, err := rule.Address(p...); return err }
	pattern := func(re string) error { _, err := rule.Pattern(re); return err }
	const want = "want an address, a CIDR block, a range like 10.0.0.1-10.0.0.9 or a wildcard like 10.1.*.*"
	for _, tt := range []struct {
		err  error
		want string
	}{
		{address(""), `address "": ` + want},
		{address("10.0.0"), `address "10.0.0": ` + want},
		{address("10.0.0.256"), `address "10.0.0.256": ` + want},
		{address("10.*.300.*"), `address "10.*.300.*": ` + want},
		{address("10.*"), `address "10.*": ` + want},
		{address("2001:db8::*"), `address "2001:db8::*": ` + want},
		{address("host/8"), `address "host/8": ` + want},
		{address("10.0.0.0/x"), `address "10.0.0.0/x": "x" is not a number of bits: ` + want},
		{address("10.0.0.0/"), `address "10.0.0.0/": "" is not a number of bits: ` + want},
		{address("10.0.0.0/33"), `address "10.0.0.0/33": want 0 to 32 bits`},
		{address("10.0.0.0/99999999999999999999"), `address "10.0.0.0/99999999999999999999": want 0 to 32 bits`},
		{address("::/129"), `address "::/129": want 0 to 128 bits`},
		{address("::ffff:10.0.0.0/8"), `address "::ffff:10.0.0.0/8": want 96 to 128 bits`},
		{address("10.0.0.1-x"), `address "10.0.0.1-x": "x" is not an address: ` + want},
		{address("10.0.0.9-10.0.0.1"), `address "10.0.0.9-10.0.0.1": the range is reversed, want 10.0.0.1-10.0.0.9`},
		{address("10.0.0.1-::5"), `address "10.0.0.1-::5": one end is IPv4 and the other IPv6`},
		{address("10.0.0.1", "a/8", "10.0.0.0/40"), "address \"a/8\": " + want + "\naddress \"10.0.0.0/40\": want 0 to 32 bits"},

		{entries("ann", "", "10.0.0.0/33"), "list \"staff\": entry 2 is empty\nlist \"staff\": entry 3: address \"10.0.0.0/33\": want 0 to 32 bits"},
		{entries("10.0.0.9-10.0.0.1"), `list "staff": entry 1: address "10.0.0.9-10.0.0.1": the range is reversed, want 10.0.0.1-10.0.0.9`},

		{pattern("a[b"), `pattern "a[b": missing closing ] at character 2: "[b"`},
		{pattern("ä(b"), `pattern "ä(b": missing closing ) at character 1: "ä(b"`},
		{pattern("x**"), `pattern "x**": invalid nested repetition operator at character 2: "**"`},
		{pattern("(?<n"), `pattern "(?<n": invalid named capture at character 1: "(?<n"`},
		{pattern(`a\`), `pattern "a\\": trailing backslash at end of expression`},
		{pattern("(?=x)"), `pattern "(?=x)": invalid or unsupported Perl syntax at character 1: "(?="`},
	} {
		if tt.err == nil || tt.err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", tt.err, tt.want)
		}
	}
}

// A quota can have a case for each of many customers: the work grows with their number, and not with its square, for which
// the time of a test would not be enough.
func TestManyCases(t *testing.T) {
	t.Parallel()
	cases := map[string]int64{}
	for i := range int64(300_000) {
		cases[strconv.FormatInt(i, 10)] = i
	}
	if _, err := rule.New([]rule.Rule{{
		Name: "calls", Per: []string{"customer"}, Quota: &rule.Quota{By: "customer", Cases: cases}, Window: window.Sliding(time.Hour),
	}}, nil); err != nil {
		t.Fatal(err)
	}
}
