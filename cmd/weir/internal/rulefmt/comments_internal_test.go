package rulefmt

import (
	"testing"

	"github.com/goccy/go-yaml/token"
)

// The lines of a long comment are looked at once, and not again for each line of it, so that the
// time to format a file is linear.
func TestCommentsLookedAtOnce(t *testing.T) {
	t.Parallel()
	comment := []*token.Token{{Type: token.CommentType}}
	f := formatter{lines: []string{"# a", "# b", "", "# c", "  a: 1"}, tokens: [][]*token.Token{comment, comment, nil, comment, {{}}}}
	for i := range 4 {
		if got := f.commentColumn(i, 2); got != 0 || f.next != 4 {
			t.Errorf("line %d: got column %d, next value in line %d, want 0 and 4", i, got, f.next)
		}
		for line := range f.next {
			f.tokens[line] = []*token.Token{nil} // looking at it panics
		}
	}
}
