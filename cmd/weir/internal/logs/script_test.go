package logs_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/logs"
	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/internal/datatest"
)

// TestScripts runs testdata. `spec` is a description of logs in YAML. `read
// attributes=(a,b)` shows the requests in its input, and why lines are bad.
func TestScripts(t *testing.T) {
	t.Parallel()
	datatest.Walk(t, "testdata/scripts/*.txt", func(t *testing.T, path string) {
		var format replay.Format
		datatest.RunTest(t, path, func(t *testing.T, d *datatest.TestData) string {
			switch d.Cmd {
			case "spec":
				spec, err := logs.Parse("log.yaml", []byte(d.Text()))
				if err != nil {
					return err.Error()
				}
				if format, err = spec.Compile(); err != nil {
					return err.Error()
				}
				return "ok"
			case "read":
				var attributes []string
				for _, arg := range d.CmdArgs {
					if arg.Key == "attributes" {
						attributes = arg.Vals
					}
				}
				return read(t, format, attributes, d.Input)
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

func read(t *testing.T, format replay.Format, attributes []string, text string) string {
	t.Helper()
	log := replay.Log{Name: "log", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	r, err := replay.Logs{Files: []replay.Log{log}, Format: format}.Open(t.Context(), attributes)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out strings.Builder
	e := replay.Entry{Values: make([]string, len(attributes))}
	for {
		if err := r.Next(&e); errors.Is(err, io.EOF) {
			return out.String()
		} else if err != nil {
			t.Fatal(err)
		}
		if e.Bad != nil {
			fmt.Fprintf(&out, "%d: %v\n", e.Line, e.Bad)
			continue
		}
		fmt.Fprintf(&out, "%d: %s", e.Line, e.Time.Time().UTC().Format("2006-01-02T15:04:05.999999Z"))
		for i, name := range attributes {
			fmt.Fprintf(&out, " %s=%q", name, e.Values[i])
		}
		if e.Verb != replay.Take {
			fmt.Fprintf(&out, " %v", e.Verb.Store())
		}
		if e.Hits != 0 {
			fmt.Fprintf(&out, " hits=%d", e.Hits)
		}
		if e.Feedback != "" {
			fmt.Fprintf(&out, " feedback=%s", e.Feedback)
		}
		if e.Hold != "" {
			fmt.Fprintf(&out, " hold=%s", e.Hold)
		}
		if e.Final {
			out.WriteString(" final")
		}
		out.WriteByte('\n')
	}
}

// FuzzParser: no line makes a parser panic, and a time that is recognised is the
// one that package time reads.
func FuzzParser(f *testing.F) {
	for _, line := range []string{
		`{"ts": "2026-03-01T12:00:00.123Z", "a": {"b": [1, 2.50, null, "x\n"]}}`, `1,"a ""b""",2026-03-01T12:00:00Z`,
		`ts=2026-03-01T12:00:00Z a="x \" y" b`, `10.0.0.1 - - [01/Mar/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1`,
		`{"ts": 1.5e9}`, `{"time":1777620000000000,"verb":"check","hits":5,"attributes":{"a":"x"}}`, `NOTICE: 2013-06-28 18:30:56 [logid=1] [ cip=1 intf=/x a=b c d=e ] [ BodyString=x ]`, `ts="`, `{"ts":`,
		"#Fields: date time a b", "2026-03-01 12:00:00 x \"y z\"", "2026-03-01\t12:00:00\t-\t%20", "Feb 29 12:00:00 host x a",
		`https 2026-03-01T12:00:00Z app/x 192.0.2.1:1 - 0 0 0 200 - 0 0 "GET https://h:443/a?b HTTP/1.1" "-" - - - "-" "-" "-" - - "-" "-" "-" "-" "-" "-" "-"`,
	} {
		f.Add(line)
	}
	specs := []logs.Spec{
		{Format: "json", Map: map[string]string{"a": ".a.b.1|first", "b": `."x.y".z|ip`}}, {Format: "csv", Columns: []string{"x", "a", "ts"}},
		{Format: "csv"}, {Format: "logfmt"}, {Format: "envoy"}, {Format: "nginx"}, {}, {Format: "koala"}, {Format: "json", TimeFormat: "unix_ms", Time: "ts"},
		{Format: "w3c"}, {Format: "cloudfront"}, {Format: "alb"}, {Pattern: `^(?P<time>\w+ +\d+ \S+) (?P<a>\S*) (?P<b>.*)`}, {Format: "csv", Time: "x+ts"}, {Format: "weir"},
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, spec := range specs {
			format, err := spec.Compile()
			if err != nil {
				t.Fatal(err)
			}
			p := format.NewParser([]string{"a", "b", "path"})
			e := replay.Entry{Values: make([]string, 3)}
			for range 2 {
				_ = p.Parse(line, &e)
			}
		}
	})
}

// BenchmarkJSON parses a line with five of its fields.
func BenchmarkJSON(b *testing.B) {
	const line = `{"ts":"2026-03-01T12:00:00.123Z","level":"info","auth":{"sub":"user-4711"},"method":"POST","path":"/v1/chat","status":200,` +
		`"bytes":5123,"remote_addr":"10.12.13.14","user_agent":"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101","duration":0.0123}`
	format, err := logs.Spec{Format: "json", Map: map[string]string{"user": ".auth.sub", "ip": ".remote_addr"}}.Compile()
	if err != nil {
		b.Fatal(err)
	}
	p := format.NewParser([]string{"bytes", "ip", "method", "path", "user"})
	e := replay.Entry{Values: make([]string, 5)}
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Parse(line, &e); err != nil {
			b.Fatal(err)
		}
	}
}
