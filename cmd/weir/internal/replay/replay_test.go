package replay_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/replay"
	"github.com/weirhq/weir/cmd/weir/internal/scripttest"
	"github.com/weirhq/weir/rule"
)

// requests returns a log of n lines with ten addresses, one line a second.
func requests(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "10.0.0.%d - - [01/Mar/2026:%02d:%02d:%02d +0000] \"GET /%d HTTP/1.1\" 200 512\n",
			i%10, i/3600%24, i/60%60, i%60, i%100)
	}
	return b.String()
}

func twoAnHour(t *testing.T) *rule.Set {
	t.Helper()
	return scripttest.Rules(t, `rules: [{name: two, per: [ip], limit: 2, window: 1h}]`)
}

func pack(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPacked reads the same log in several forms: the numbers must be equal. Ten
// thousand lines are several blocks.
func TestPacked(t *testing.T) {
	t.Parallel()
	content := requests(10_000)
	half := strings.Index(content[len(content)/2:], "\n") + len(content)/2 + 1
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"plain.log":  []byte(content),
		"packed.log": pack(t, content),
		"joined.gz":  slices.Concat(pack(t, content[:half]), pack(t, content[half:])),
		"first.log":  []byte(content[:half]),
		"second.gz":  pack(t, strings.TrimSuffix(content[half:], "\n")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name string) replay.Log { return replay.File(filepath.Join(dir, name), nil, nil) }
	slow := replay.Log{Name: "slow", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(iotest.HalfReader(strings.NewReader(content))), nil
	}}

	var want string
	for _, logs := range [][]replay.Log{
		{file("plain.log")}, {file("packed.log")}, {file("joined.gz")}, {file("first.log"), file("second.gz")}, {slow},
	} {
		report, err := replay.Run(t.Context(), twoAnHour(t), replay.Logs{Files: logs})
		if err != nil {
			t.Fatalf("%s: %v", logs[0].Name, err)
		}
		got := show(t, report, true)
		if want == "" {
			want = got
		}
		if got != want || report.Lines != 10_000 || report.Rules[0].Allowed != 60 {
			t.Errorf("%s: got %s, want %s", logs[0].Name, got, want)
		}
	}
}

func TestLongLine(t *testing.T) {
	t.Parallel()
	for _, n := range []int{256<<10 - 1, 256 << 10, 256<<10 + 1, 512 << 10, 1 << 20} {
		line := requests(1)
		long := strings.Repeat("ä", n/2) + strings.Repeat("x", n%2) + "\n"
		report, err := replay.Run(t.Context(), twoAnHour(t), replay.Logs{Files: []replay.Log{text("a", line+long+line+long), text("b", long+long+line)}})
		if err != nil {
			t.Fatal(err)
		}
		if report.Lines != 7 || report.Bad != 4 || report.Rules[0].Matched != 3 {
			t.Errorf("%d bytes: got %d lines, %d bad, %d matched, want 7, 4, 3", n, report.Lines, report.Bad, report.Rules[0].Matched)
		}
		for i, want := range []string{"a:2", "a:4", "b:1"} {
			if got := report.BadLines[i].String(); !strings.HasPrefix(got, want) || len(got) > 200 {
				t.Errorf("%d bytes: got bad line %s, want a short one at %s", n, got, want)
			}
		}
	}
}

// TestBrokenLog reads a log that ends with an error: the report covers the lines
// before.
func TestBrokenLog(t *testing.T) {
	t.Parallel()
	packed := pack(t, requests(10_000))
	broken := errors.New("the disk is gone")
	tests := []struct {
		name string
		open func() (io.ReadCloser, error)
		want error
		some bool // some of the broken log was read
	}{
		{"missing", replay.File("bad", nil, nil).Open, fs.ErrNotExist, false},
		{"gzip cut short", func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(packed[:len(packed)/2])), nil
		}, io.ErrUnexpectedEOF, true},
		{"gzip header", func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("\x1f\x8b, but not gzip")), nil
		}, gzip.ErrHeader, false},
		{"read error", func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader(requests(3)+"10.0"), iotest.ErrReader(broken))), nil
		}, broken, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			report, err := replay.Run(t.Context(), twoAnHour(t), replay.Logs{Files: []replay.Log{
				text("good", requests(5)), {Name: "bad", Open: tt.open}, text("never", requests(5)),
			}})
			if !errors.Is(err, tt.want) || strings.Count(fmt.Sprint(err), "bad: ") != 1 {
				t.Errorf("got error %v, want %v and bad: once", err, tt.want)
			}
			if some := report.Lines > 5; some != tt.some || report.Lines < 5 || report.Bad != 0 {
				t.Errorf("got %d lines, %d bad, want none bad, and more than 5: %t", report.Lines, report.Bad, tt.some)
			}
		})
	}
}

type closer struct {
	io.Reader
	closed *bool
}

func (c closer) Close() error { *c.closed = true; return nil }

// TestCancel cancels a replay of an endless log, which must then be closed.
func TestCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	closed := false
	endless := replay.Log{Name: "endless", Open: func() (io.ReadCloser, error) {
		return closer{&endlessReader{}, &closed}, nil
	}}
	report, err := replay.Run(ctx, twoAnHour(t), replay.Logs{Files: []replay.Log{endless}}, replay.WithProgress(func(lines int64) {
		if lines == 0 {
			t.Error("got progress of 0 lines")
		}
		if lines > 10_000 {
			cancel()
		}
	}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	if report.Lines <= 10_000 || !closed {
		t.Errorf("got %d lines and closed %t, want more than 10000 and a closed log", report.Lines, closed)
	}
}

// endlessReader is a log with a line for each second.
type endlessReader struct {
	second int
	rest   string
}

func (r *endlessReader) Read(p []byte) (int, error) {
	if r.rest == "" {
		at := time.Unix(int64(r.second), 0).UTC().Format("02/Jan/2006:15:04:05 -0700")
		r.rest = fmt.Sprintf("10.0.0.%d - - [%s] \"GET / HTTP/1.1\" 200 1\n", r.second%10, at)
		r.second++
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestHowMuchIsShown(t *testing.T) {
	t.Parallel()
	log := requests(100) + strings.Repeat("bad\n", 5)
	report, err := replay.Run(t.Context(), twoAnHour(t), replay.Logs{Files: []replay.Log{text("a", log)}}, replay.WithTop(3))
	if err != nil {
		t.Fatal(err)
	}
	want := "10.0.0.0 8, 10.0.0.1 8, 10.0.0.2 8, "
	got := ""
	for _, k := range report.Rules[0].TopDenied {
		got += fmt.Sprintf("%s %d, ", k.Key, k.Denied)
	}
	if got != want {
		t.Errorf("got top denied %v, want %v", got, want)
	}
	if len(report.BadLines) != 3 || report.Bad != 5 {
		t.Errorf("got %d bad lines of %d, want 3 of 5", len(report.BadLines), report.Bad)
	}
	if got := show(t, report, false); !strings.Contains(got, "and 2 more\n") {
		t.Errorf("got %s, want the number of bad lines that are not shown", got)
	}
}

// TestStrangeKeys has a client that sends control characters of terminals.
func TestStrangeKeys(t *testing.T) {
	t.Parallel()
	rules := scripttest.Rules(t, `rules: [{name: agents, per: [agent], limit: 0, window: 1h}]`)
	line := "h - - [01/Mar/2026:12:00:00 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"a\tb\x1b[2J\xff\"\n"
	report, err := replay.Run(t.Context(), rules, replay.Logs{Files: []replay.Log{text("a", line+"\x1b[2J\n")}})
	if err != nil {
		t.Fatal(err)
	}
	got := show(t, report, false)
	for _, want := range []string{`"a\tb\x1b[2J\xff"`, `want address ident user [: "\x1b[2J"`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
}
