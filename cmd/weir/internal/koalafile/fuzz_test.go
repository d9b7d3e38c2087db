package koalafile_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
	"github.com/weirhq/weir/fault"
)

// FuzzParse checks that reading any bytes gives a whole file, or faults with a place in the
// source. Run it with -fuzzminimizetime=20x: the
// inputs are long.
func FuzzParse(f *testing.F) {
	src, err := os.ReadFile("testdata/site/conf/koala_rule.conf")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(src, []byte("192.0.2.1\n10.0.0.0/99\nann\n"))
	f.Add([]byte(strings.ReplaceAll(string(src), "\n", "\r\n")), []byte{})
	f.Add([]byte(around("rule : [count] [a!=1-5,7-9;b! <5;c-NOTIN-black;d=10.*.0.*,::1{*}] [time=86400;count=4294967298] [result=1;return=1]\n")), []byte("\xff\n"))
	f.Add([]byte(around("rule : [base] [a>9007199254740991;b=0-9223372036854775807] [base=1;time=1;count=1] [result=3;return=1]\n")), []byte("a"))
	f.Add([]byte("\ufeff[RULES]\n#\nrule:[direct][x=[a],b][][result=0;return=-1]x\n[result]\n0:{\"Err_no\":1e3,\"\u0130\":[]}"), []byte("*.*.*.*"))
	f.Fuzz(func(t *testing.T, src, dict []byte) {
		file, err := koalafile.Parse("koala_rule.conf", src, func(string) ([]byte, error) { return dict, nil })
		if err != nil {
			sound(t, err, src)
			return
		}
		if file.Set.Len() != len(file.Rules) || len(file.Lists) != len(file.Paths) || file.Zone == nil {
			t.Fatalf("got %+v, want it whole", file)
		}
		values := make([]string, len(file.Set.Attributes()))
		for i := range values {
			values[i] = string(dict)
		}
		file.Set.Compiled().Match(values, nil, false)
		for _, w := range file.Warnings {
			places(t, w, src, dict)
		}
	})
}

// FuzzParseMain checks the same for the main file.
func FuzzParseMain(f *testing.F) {
	f.Add([]byte("listen = :9981\nrule_file = conf/a.conf\nredis_server = 127.0.0.1:6379\nredis_auth = x\npolicy_loader_frequency = 30\nlog_level = 7\n"))
	f.Add([]byte("\ufeff#\r\ninclude b.conf\nlisten=[::1]:0\nredis_server=a%zz:1\nrule_file==\n\xff"))
	f.Fuzz(func(t *testing.T, src []byte) {
		m, warnings, err := koalafile.ParseMain("koala.conf", src, nil)
		if err != nil {
			sound(t, err, src)
			return
		}
		if m.RuleFile == "" || m.Reload <= 0 || (m.StoreURL() == "") != (m.Redis == "") {
			t.Fatalf("got %+v, want a rule file, how often to look at it, and a store that is named", m)
		}
		for _, w := range warnings {
			places(t, w, src)
		}
	})
}

// sound checks that err has only faults that a person can find in src.
func sound(t *testing.T, err error, src []byte) {
	t.Helper()
	var faults fault.List
	if !errors.As(err, &faults) || len(faults) == 0 || faults.Error() == "" {
		t.Fatalf("got %T %v, want faults", err, err)
	}
	for _, f := range faults {
		places(t, f, src)
	}
}

// places checks that the place of a fault is in one of files. A line that can have a secret is not shown.
func places(t *testing.T, f *fault.Fault, files ...[]byte) {
	t.Helper()
	lines := 1
	for _, src := range files {
		lines = max(lines, strings.Count(string(src), "\n")+1)
	}
	if at := f.Place; at.Line < 1 || at.Line > lines || at.Column < 1 || at.Source != "" && at.Column > len(at.Source)+1 || f.Problem == "" {
		t.Fatalf("got %+v, want a place in the %d lines, and a problem", *f, lines)
	}
	if text := f.Error(); strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }) {
		t.Fatalf("got %q, want no control characters", text)
	}
}
