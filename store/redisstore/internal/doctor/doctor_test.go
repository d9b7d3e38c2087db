package doctor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/datatest"
	"github.com/weirhq/weir/store/redisstore/internal/doctor"
	"github.com/weirhq/weir/store/remote"
)

// TestChecks runs the checks on what servers answered. The texts of Redis 7.0 and 8.0,
// Valkey 8 and 9, and Redict 7 were recorded. Those of the other engines are excerpts,
// put together from what these engines and their users have published.
//
// A line of input changes a recording: "info NAME:VALUE", "config NAME VALUE" and
// "hello NAME:VALUE" replace a line or add one, "no info" drops a text, "ran
// COMMAND ERROR", "raced SENT COUNTED", "trip D", "ahead D", "keys NAME…", and
// "use NAME VALUE". With only, the output has these checks only.
func TestChecks(t *testing.T) {
	t.Parallel()
	datatest.RunTest(t, "testdata/checks.txt", func(t *testing.T, d *datatest.TestData) string {
		facts := recorded(t, d.Arg("server"))
		for line := range strings.Lines(d.Input) {
			change(t, facts, strings.TrimSpace(line))
		}
		var out strings.Builder
		for _, f := range doctor.Check(facts) {
			if only := d.CmdArgs[len(d.CmdArgs)-1]; only.Key != "only" || slices.Contains(only.Vals, f.Check) {
				fmt.Fprintf(&out, "%-7v %-11s %s\n", f.Level, f.Check, f)
			}
		}
		return out.String()
	})
}

// recorded returns what a server answered, and what a good one does where no
// text has it.
func recorded(t *testing.T, server string) *doctor.Facts {
	t.Helper()
	text := func(kind string) string {
		b, err := os.ReadFile(filepath.Join("testdata", "servers", server+"."+kind))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	f := &doctor.Facts{
		Node: "host:6379",
		Use:  doctor.Use{Scheme: "redis", User: "weir", Prefix: "weir", Timeout: 50 * time.Millisecond},
		Info: text("info"), Config: text("config"), Hello: text("hello"), User: "default",
		Ran:   map[string]string{"STRUCT": ""},
		Raced: 20, Counted: 20,
		RoundTrip: 300 * time.Microsecond, Ahead: 2 * time.Millisecond,
		Keys: []string{"weir:{ann}:posts-per-hour:6dd2c1b94f10a3e7"}, KeysSeen: true,
	}
	for _, c := range doctor.Commands {
		f.Ran[c] = ""
	}
	return f
}

func change(t *testing.T, f *doctor.Facts, line string) {
	t.Helper()
	what, rest, _ := strings.Cut(line, " ")
	name, value, _ := strings.Cut(rest, " ")
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		return n
	}
	duration := func(text string) time.Duration {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		return d
	}
	switch what + " " + name {
	case "no info":
		f.Info = ""
	case "no hello":
		f.Hello = ""
	case "no config":
		f.Config = ""
	case "no user":
		f.User = ""
	case "no keys":
		f.Keys, f.KeysSeen = nil, false
	case "no programs":
		f.Ran, f.Raced, f.Counted = nil, 0, 0
	case "use scheme":
		f.Use.Scheme = value
	case "use wait_replicas":
		f.Use.WaitReplicas = number(value)
	case "use timeout":
		f.Use.Timeout = duration(value)
	default:
		switch what {
		case "info":
			f.Info = replace(f.Info, rest, ":")
		case "hello":
			f.Hello = replace(f.Hello, rest, ":")
		case "config":
			f.Config = replace(f.Config, rest, " ")
		case "ran":
			name = strings.ReplaceAll(name, "_", " ")
			f.Ran[name] = value
		case "raced":
			f.Raced, f.Counted = number(name), number(value)
		case "trip":
			f.RoundTrip = duration(name)
		case "ahead":
			f.Ahead = duration(name)
		case "keys":
			f.Keys = strings.Fields(rest)
		default:
			t.Fatalf("%q: no such change", line)
		}
	}
}

// replace returns text with a line instead of the one of the same name, or with
// one more line.
func replace(text, line, separator string) string {
	name, _, _ := strings.Cut(line, separator)
	var all []string
	for l := range strings.Lines(text) {
		if !strings.HasPrefix(l, name+separator) {
			all = append(all, l)
		}
	}
	return strings.Join(append(all, line+"\n"), "")
}

// Texts that no server sends must not end the program.
func FuzzCheck(f *testing.F) {
	files, err := filepath.Glob("testdata/servers/*.info")
	if err != nil || len(files) == 0 {
		f.Fatalf("got files %v and error %v, want some", files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b), "maxmemory 1\n", "weir:x")
	}
	f.Fuzz(func(t *testing.T, info, config, key string) {
		facts := &doctor.Facts{Info: info, Config: config, Keys: []string{key}, KeysSeen: true}
		names := map[string]bool{}
		for _, finding := range doctor.Check(facts) {
			names[finding.Check] = true
			if finding.Seen == "" && finding.Level != remote.LevelOK {
				t.Errorf("%s: got %v without what was seen", finding.Check, finding.Level)
			}
			if finding.Level == remote.LevelRefuse && finding.Fix == "" {
				t.Errorf("%s: refuses without a fix", finding.Check)
			}
		}
		if len(names) != 15 {
			t.Errorf("got %d checks, want 15", len(names))
		}
	})
}
