package jsontext_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/jsontext"
	"github.com/weirhq/weir/window"
)

func TestAppendSeconds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0"},
		{time.Second, "1"},
		{1234500 * time.Millisecond, "1234.5"},
		{time.Microsecond, "0.000001"},
		{time.Hour + 70*time.Millisecond, "3600.07"},
		{window.Never, "-1"},
		{window.MaxLength, "3153600000"},
	} {
		if got := string(jsontext.AppendSeconds(nil, tc.d)); got != tc.want {
			t.Errorf("%v: got %s, want %s", tc.d, got, tc.want)
		}
	}
}

func FuzzAppendText(f *testing.F) {
	f.Add("plain")
	f.Add("\"\\\x00\n\r\t\x7fé😀\u2028")
	f.Add("broken\xff\xc3")
	f.Fuzz(func(t *testing.T, text string) {
		b := jsontext.AppendText(nil, text)
		var got string
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%q: got %s, want JSON: %v", text, b, err)
		}
		// Runes are what is left when each broken byte is replaced.
		if want := string([]rune(text)); got != want {
			t.Fatalf("%q: got %q, want %q", text, got, want)
		}
		if got := jsontext.Escapes(text); got != len(b)-len(`""`)-len(text) {
			t.Fatalf("%q: got %d bytes more, want those of %s", text, got, b)
		}
	})
}
