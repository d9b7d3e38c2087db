package koalafile_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/koalafile"
	"github.com/weirhq/weir/fault"
)

// write makes files in a new directory, by their paths in it.
func write(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const twoDicts = `[dicts]
near : near.dat
home : conf/home.dat
[rules]
rule : [direct] [uid @ near; ip @ home] [] [result=1; return=1]
`

func load(path string) (*koalafile.File, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return koalafile.Parse(path, src, os.ReadFile)
}

// A dict is in the directory of the rule file or in the parent directory, where koala was
// started; the directory of the rule file comes first.
func TestLoadFindsDicts(t *testing.T) {
	t.Parallel()
	for name, files := range map[string][2]string{
		"above":   {"conf/near.dat", "conf/home.dat"},
		"in both": {"conf/near.dat", "conf/conf/home.dat"},
	} {
		dir := write(t, map[string]string{
			"conf/koala_rule.conf": twoDicts, "near.dat": "far", "conf/home.dat": "far", files[0]: "x", files[1]: "192.0.2.1",
		})
		f, err := load(filepath.Join(dir, "conf", "koala_rule.conf"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := []string{filepath.Join(dir, files[0]), filepath.Join(dir, files[1])}
		if !slices.Equal(f.Paths, want) {
			t.Errorf("%s: got paths %q, want %q", name, f.Paths, want)
		}
		if !matches(f.Set, "uid", "x", "ip", "192.0.2.1") {
			t.Errorf("%s: got no match, want one", name)
		}
		if want := (koalafile.List{Name: "home"}); f.Lists[1] != want {
			t.Errorf("%s: got list %+v, want %+v", name, f.Lists[1], want)
		}
	}
}

// An absolute path is taken as it is.
func TestLoadAbsoluteDict(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"a.dat": "x", "koala_rule.conf": ""})
	dict, path := filepath.Join(dir, "a.dat"), filepath.Join(dir, "koala_rule.conf")
	src := "[dicts]\na : " + dict + "\n[rules]\nrule : [direct] [uid @ a] [] [result=1; return=1]\n"
	if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := load(path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.Paths, []string{dict}) || !matches(f.Set, "uid", "x") {
		t.Errorf("got paths %q, want %q, and a match", f.Paths, dict)
	}
}

// Of a long line the part around the fault is shown, of a long problem both
// ends.
func TestLongLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("提", 5000)
	_, err := koalafile.Parse("a.conf", []byte("[rules]\nrule : [count] [x="+long+";y] ["+long+"] [result=1; return=1]"), nil)
	var faults fault.List
	if !errors.As(err, &faults) || len(faults) < 2 || faults[0].Place.Column != 5020 {
		t.Fatalf("got %v, want faults, the first in column 5020", err)
	}
	for _, f := range faults {
		if text := f.Error(); len([]rune(text)) > 1000 {
			t.Errorf("got %d characters, want at most 1000: %s", len([]rune(text)), text)
		}
	}
}

func TestLoadFaults(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"conf/koala_rule.conf": twoDicts})
	if _, err := load(filepath.Join(dir, "none.conf")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no rule file: got %v, want %v", err, os.ErrNotExist)
	}
	_, err := load(filepath.Join(dir, "conf", "koala_rule.conf"))
	var faults fault.List
	if !errors.As(err, &faults) || len(faults) != 2 || faults[0].Place.Line != 2 || faults[1].Place.Line != 3 {
		t.Errorf("no dicts: got %v, want faults in lines 2 and 3", err)
	}
}

// A main file may include others; later values count. The rule file is found
// as dicts are.
func TestLoadMain(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"conf/koala.conf":      "listen = :1\ninclude more/site.conf\nrule_file = conf/koala_rule.conf\n",
		"conf/more/site.conf":  "listen = :9981\nInclude redis.conf\n",
		"conf/more/redis.conf": "redis_server = redis:6379\nlog_level = 7\n",
		"conf/koala_rule.conf": "[rules]\n",
	})
	m, warnings, err := koalafile.LoadMain(filepath.Join(dir, "conf", "koala.conf"))
	if err != nil {
		t.Fatal(err)
	}
	want := koalafile.Main{
		Listen: ":9981", RuleFile: filepath.Join(dir, "conf", "koala_rule.conf"),
		Redis: "redis:6379", Timeout: 500 * time.Millisecond, Reload: 5 * time.Minute,
	}
	if m != want {
		t.Errorf("got %+v, want %+v", m, want)
	}
	if len(warnings) != 1 || warnings[0].Place.File != filepath.Join(dir, "conf", "more", "redis.conf") || warnings[0].Place.Line != 2 {
		t.Errorf("got warnings %v, want one in redis.conf", warnings)
	}
}

// Settings without an effect share a line of a log. A misspelled key has its own.
func TestBrief(t *testing.T) {
	t.Parallel()
	const text = "rule_file = a\npid_file = b\nlog_level = 7\nlog_cron_time = day\nredis_srever = :1\nredis_pool_maxIdle = 5\n"
	_, warnings, err := koalafile.ParseMain("koala.conf", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`koala.conf:5:1: "redis_srever" is unknown to koala and to weir`,
		"koala.conf: 4 of koala's settings have no effect: weir check koala.conf lists them",
	}
	if got := koalafile.Brief("koala.conf", warnings); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLoadMainFaults(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"self.conf": "rule_file = a\ninclude self.conf\n",
		"gone.conf": "rule_file = a\ninclude none.conf\n",
	})
	for _, name := range []string{"self.conf", "gone.conf"} {
		_, _, err := koalafile.LoadMain(filepath.Join(dir, name))
		var faults fault.List
		if !errors.As(err, &faults) || len(faults) != 1 || faults[0].Place.Line != 2 {
			t.Errorf("%s: got %v, want a fault in line 2", name, err)
		}
	}
	if _, _, err := koalafile.LoadMain(filepath.Join(dir, "none.conf")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no main file: got %v, want %v", err, os.ErrNotExist)
	}
}
