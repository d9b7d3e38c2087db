package accesslog_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"
	"time"

	"github.com/weirhq/weir/cmd/weir/internal/logs/accesslog"
	"github.com/weirhq/weir/window"
)

// combinedForm matches the lines that randomLine writes, and their beginnings
// that are whole lines of the common or the combined format.
var combinedForm = regexp.MustCompile(`^(\S+) \S+ \S+ \[([^\]]+)\] "([A-Z]+) ([^ ?]+)\??(.*?) HTTP/1\.[01]" (\d{3}) (\d+|-)` +
	`(?: |(?: "((?:[^"\\]|\\.)*)"(?: "((?:[^"\\]|\\.)*)")?)?)$`)

// TestTwin compares every field of 20,000 random lines, one in four of them cut
// short, each parsed by a parser that has parsed other lines, with what a regular expression and package time read from the same line.
func TestTwin(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	read, bad := 0, 0
	var p accesslog.Parser
	for range 20_000 {
		line := randomLine(random)
		if random.IntN(4) == 0 {
			line = line[:random.IntN(len(line))]
		}
		var got accesslog.Entry
		err := p.Parse(line, &got)
		var again accesslog.Entry
		if err2 := p.Parse(line, &again); (err == nil) != (err2 == nil) || again != got {
			t.Fatalf("%s: got %+v, %v when the minute was known, and %+v, %v before", line, again, err2, got, err)
		}
		f := combinedForm.FindStringSubmatch(line)
		if (f == nil) != (err != nil) {
			t.Fatalf("%s: got error %v, want one only for a line that the expression does not match", line, err)
		}
		if err != nil {
			bad++
			continue
		}
		if want := entryOf(t, f); got != want {
			t.Fatalf("%s: got %+v, want %+v", line, got, want)
		}
		read++
	}
	if read < 15_000 || bad < 2_000 {
		t.Errorf("got %d good and %d bad lines, want thousands of both", read, bad)
	}
}

// entryOf returns the entry for the groups of combinedForm.
func entryOf(t *testing.T, f []string) accesslog.Entry {
	t.Helper()
	when, err := time.Parse("02/Jan/2006:15:04:05 -0700", f[2])
	if err != nil {
		t.Fatal(err)
	}
	for i := range f {
		if f[i] == "-" {
			f[i] = ""
		}
	}
	if f[7] == "" {
		f[7] = "0"
	}
	return accesslog.Entry{
		Time: window.At(when), IP: f[1], Method: f[3], Path: f[4], Query: f[5],
		Status: f[6], Bytes: f[7], Referer: f[8], Agent: f[9],
	}
}

// randomLine returns a line of the combined format.
func randomLine(random *rand.Rand) string {
	pick := func(parts ...string) string { return parts[random.IntN(len(parts))] }
	zone := time.FixedZone("", 60*(random.IntN(24*60)-12*60))
	return fmt.Sprintf(`%s %s %s [%s] "%s %s%s HTTP/1.%d" %d %s %s %s`,
		pick("192.0.2.7", "2001:db8::1", "client.example", "-"), pick("-", "ident"), pick("-", "ann", "a.b"),
		time.Unix(random.Int64N(4e9), 0).In(zone).Format("02/Jan/2006:15:04:05 -0700"),
		pick("GET", "POST", "PROPFIND"), pick("/", "/wp-login.php", "/a/b.html", "/%C3%A4", `/\"`, "*"), pick("", "?q=1&r=2", "?a?b", "?a b"),
		random.IntN(2), 100+random.IntN(500), pick("-", "0", "187", "123456789012345"),
		pick(`"-"`, `""`, `"https://blog.example/?p=1"`, `"a\" b"`), pick(`"-"`, `""`, `"Mozilla/5.0 (X11; Linux x86_64)"`, `"c\\"`, `"\x22"`))
}
