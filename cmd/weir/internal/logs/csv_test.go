package logs_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/cmd/weir/internal/logs"
	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/rule"
)

// FuzzCSV: text that encoding/csv reads as records of three columns is read as the
// same records, also where newlines are inside quotes.
func FuzzCSV(f *testing.F) {
	f.Add("1,a,b\n2,\"c\nd\",e\n")
	f.Add("1,\"a\"\"\n\",\"\n\n\"\r\n2,\"x\ry\r\nz\",\"\"\n")
	f.Add("1,a\"b,c\n2,d,e\n")
	f.Add("\n\n1,\"\",\"\"")
	f.Add("1,ä,\"ö\n,\"\n")
	format, err := logs.Spec{Format: "csv", Columns: []string{"ts", "a", "b"}}.Compile()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in := csv.NewReader(strings.NewReader(text))
		in.FieldsPerRecord = 3
		want, err := in.ReadAll()
		if err != nil || len(text) > 60_000 {
			t.Skip("encoding/csv refuses the text, or a line is too long for the parser")
		}
		var got [][]string
		p := format.NewParser([]string{"ts", "a", "b"})
		for line := range strings.Lines(text) {
			e := replay.Entry{Values: make([]string, 3)}
			switch err := p.Parse(strings.TrimSuffix(line, "\n"), &e); {
			case errors.Is(err, replay.ErrSkip):
			case err != nil && !strings.Contains(err.Error(), "time") && !strings.HasPrefix(err.Error(), "ts: "):
				t.Fatalf("%q: %v", text, err)
			case err == nil:
				got = append(got, slices.Clone(e.Values))
			}
		}
		want = slices.DeleteFunc(want, func(r []string) bool {
			e := replay.Entry{Values: make([]string, 3)}
			return format.NewParser([]string{"ts", "a", "b"}).Parse(r[0]+",,", &e) != nil
		})
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	})
}

// TestOpenQuotes: all lines that a missing quotation mark takes with it are bad,
// wherever that ends, and reading continues after them.
func TestOpenQuotes(t *testing.T) {
	t.Parallel()
	long := "1,\"x\n" + strings.Repeat("2,lost\n", 10_000) // 70 KB
	for name, tc := range map[string]struct {
		logs       []string
		lines, bad int64
		first      string
	}{
		"end":  {[]string{"1,a\n2,\"b\n3,c\n", "4,d\n"}, 4, 2, "0:2: a text in quotes begins here and does not end: \"2,\\\"b\\n3,c\\n\""},
		"last": {[]string{"1,a\n2,\"b"}, 2, 1, "0:2: a text in quotes begins here and does not end: \"2,\\\"b\\n\""},
		"long": {[]string{long, "4,d\n"}, 10_002, 9_363, "0:1: a text in quotes begins here and does not end within 65536 bytes: "},
		"two":  {[]string{"1,\"a", "1,\"a\n"}, 2, 2, "0:1: a text in quotes"},
	} {
		var list []replay.Log
		for i, text := range tc.logs {
			list = append(list, replay.Log{Name: fmt.Sprint(i), Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }})
		}
		format, err := logs.Spec{Format: "csv", Columns: []string{"ts", "a"}}.Compile()
		if err != nil {
			t.Fatal(err)
		}
		rules, err := rule.New(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range []replay.Logs{{Files: list, Format: format}, {Files: list, Format: format, Merge: true, Sort: 1}} {
			r, err := replay.Run(t.Context(), rules, source)
			if err != nil {
				t.Fatal(err)
			}
			if r.Lines != tc.lines || r.Bad != tc.bad || r.Requests != tc.lines-tc.bad || !strings.HasPrefix(r.BadLines[0].String(), tc.first) {
				t.Errorf("%s: got %d lines, %d bad, %v, want %d, %d, %s", name, r.Lines, r.Bad, r.BadLines, tc.lines, tc.bad, tc.first)
			}
		}
	}
}
