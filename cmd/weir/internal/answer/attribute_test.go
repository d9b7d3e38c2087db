package answer_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/cmd/weir/internal/answer"
)

func TestAttributeFault(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1025)
	for _, tc := range []struct {
		before      int
		name, value string
		want        string // empty: no fault
	}{
		{0, "user", "", ""},
		{63, "user", long[1:], ""},
		{64, "user", "ann", "weir: more than 64 attributes"},
		{1, "a", "ann", "weir: a: is there twice"},
		{0, "", "ann", "weir: an attribute without a name"},
		{0, long, "ann", "weir: an attribute's name has 1025 bytes, more than 1024"},
		{0, "\xff", "ann", "weir: an attribute's name is not valid UTF-8"},
		{0, "user", long, "weir: user: has more than 1024 bytes"},
		{0, "user", "\xff", "weir: user: text is not valid UTF-8"},
	} {
		attrs := make([]weir.Attribute, tc.before)
		for i := range attrs {
			attrs[i].Name = strings.Repeat("a", i+1)
		}
		got := ""
		if f := answer.AttributeFault(attrs, tc.name, tc.value); f != nil {
			got = f.Error()
		}
		if got != tc.want {
			t.Errorf("%.10q=%.10q after %d others: got %q, want %q", tc.name, tc.value, tc.before, got, tc.want)
		}
	}
}
