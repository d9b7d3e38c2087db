package headers_test

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/headers"
)

// The table of dialects in the manual states what Set writes.
func TestDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/reference/http.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)`[^|]* \\| (.*) \\|$")
	field := regexp.MustCompile("`([A-Z][A-Za-z-]+): ([^`]+)`")
	_, table, _ := strings.Cut(string(page), "| `--headers` |")
	table, _, _ = strings.Cut(table, "\n\n")
	var seen []string
	for _, m := range row.FindAllStringSubmatch(table, -1) {
		dialect := headers.Dialect(m[1])
		seen = append(seen, m[1])
		h := http.Header{}
		headers.Format{Dialect: dialect}.Set(h, &headers.Limits{
			RetryAfter: 30100 * time.Millisecond,
			Policies:   []headers.Policy{{Name: "posts", Quota: 5, Window: time.Hour, RetryAfter: 30100 * time.Millisecond, ResetAfter: time.Hour}},
		})
		fields := field.FindAllStringSubmatch(m[2], -1)
		for _, f := range fields {
			if got := h.Get(f[1]); got != f[2] {
				t.Errorf("%s: got %s: %s, want %s", m[1], f[1], got, f[2])
			}
		}
		if len(fields) != len(h) && dialect != headers.LegacyEpoch {
			t.Errorf("%s: got %v, want %s", m[1], h, m[2])
		}
	}
	if !slices.Equal(seen, headers.Dialects()) {
		t.Errorf("got dialects %v, want %v", seen, headers.Dialects())
	}
	h := http.Header{}
	unknown := headers.Format{Dialect: "draft-04"}
	if unknown.Set(h, &headers.Limits{RetryAfter: time.Second}); len(h) > 0 {
		t.Errorf("got %v in a dialect that does not exist", h)
	}
}
