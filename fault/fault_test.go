package fault_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/fault"
)

func ExampleFault() {
	err := error(&fault.Fault{
		Rule: "posts", Problem: `unknown key "limt": did you mean "limit"?`,
		Place: fault.Place{File: "rules.yaml", Line: 4, Column: 5, Source: "    limt: 5"},
	})
	fmt.Println(err)

	err = fmt.Errorf("new limiter: %w", fault.Newf("window.length", "%s: want at least a microsecond", "0s"))
	var f *fault.Fault
	if errors.As(err, &f) {
		fmt.Println(f.Path)
	}
	// Output:
	// rules.yaml:4:5: rule "posts": unknown key "limt": did you mean "limit"?
	//     limt: 5
	//     ^
	// window.length
}

func TestError(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 1000)
	in := func(file string, column int, problem, source string) fault.Fault {
		return fault.Fault{Problem: problem, Place: fault.Place{File: file, Line: 1, Column: column, Source: source}}
	}
	for _, tt := range []struct {
		name string
		f    fault.Fault
		want string
	}{
		{"no line", in("f", 1, "p", ""), "f:1:1: p"},
		{"no file", in("", 7, "p", ""), "1:7: p"},
		{"blank line", in("f", 1, "p", " \t"), "f:1:1: p"},
		{"tabs stay under tabs", in("f", 3, "p", "\tab"), "f:1:3: p\n\tab\n\t ^"},
		{"past the end", in("f", 9, "p", "ab"), "f:1:9: p\nab\n  ^"},
		{"control characters", in("\x0e", 1, "\x1b[2J", "\x07x"), "\ufffd:1:1: \ufffd[2J\n\ufffdx\n^"},
		{"a long problem", in("f", 1, long, ""), "f:1:1: " + long[:200] + "…" + long[:200]},
		{"a long line", in("f", 501, "p", long), "f:1:501: p\n" + long[:200] + "\n" + strings.Repeat(" ", 100) + "^"},
		{"no place", fault.Fault{Path: "window.length", Problem: "p"}, "weir: window.length: p"},
		{"nothing but a problem", fault.Fault{Problem: "p"}, "weir: p"},
		{"a named rule", fault.Fault{Path: "rules[3].limit", Rule: "posts", Problem: "p"}, `weir: rule "posts": limit: p`},
		{"a rule without name", fault.Fault{Path: "rules[3].name", Problem: "p"}, "weir: rules[3].name: p"},
		{"a rule as a whole", fault.Fault{Path: "rules[3]", Rule: "posts", Problem: "p"}, `weir: rule "posts": p`},
		{"a path in a file", fault.Fault{Path: "rules[3].name", Problem: "p", Place: fault.Place{File: "f", Line: 1, Column: 2}}, "f:1:2: name: p"},
	} {
		if got := tt.f.Error(); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

func TestIn(t *testing.T) {
	t.Parallel()
	if got, want := fault.Newf("", "p").In("user").In("attributes").In("[2]").In("requests").Path, "requests[2].attributes.user"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var none *fault.Fault
	if got := none.In("user"); got != nil {
		t.Errorf("got %v, want nil", got)
	}
}

func TestSort(t *testing.T) {
	t.Parallel()
	at := func(file string, line, column int) *fault.Fault {
		return &fault.Fault{Place: fault.Place{File: file, Line: line, Column: column}}
	}
	l := fault.List{at("list", 1, 1), at("main", 2, 1), at("main", 1, 5), at("main", 1, 2)}
	l.Sort("main")
	if got, want := l.Error(), "main:1:2: \nmain:1:5: \nmain:2:1: \nlist:1:1: "; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestOf finds faults through joins, wraps and lists, each once.
func TestOf(t *testing.T) {
	t.Parallel()
	a, b, c := fault.Newf("a", "p"), fault.Newf("b", "p"), fault.Newf("c", "p")
	err := fmt.Errorf("outer: %w", errors.Join(errors.New("other"), a, fmt.Errorf("inner: %w", fault.List{b, c})))
	var first *fault.Fault
	if !errors.As(err, &first) || first != a {
		t.Errorf("got %v, want %v", first, a)
	}
	var list fault.List
	if !errors.As(err, &list) || len(list) != 2 {
		t.Errorf("got %v, want the two that are a list", list)
	}
	if first = nil; !errors.As(list.Err(), &first) || first != b {
		t.Errorf("got %v, want %v", first, b)
	}
	if got, want := fault.Of(err).Error(), "weir: a: p\nweir: b: p\nweir: c: p"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := fault.Of(errors.New("other")); got != nil {
		t.Errorf("got %v, want nil", got)
	}
	if got := (fault.List{}).Err(); got != nil {
		t.Errorf("got %v, want nil", got)
	}
}

func TestDidYouMean(t *testing.T) {
	t.Parallel()
	known := []string{"limit", "window", "rediss+sentinel"}
	for word, want := range map[string]string{
		"limt": "limit", "LIMIT": "limit", "ilmit": "limit", "widnow": "window",
		"redis+sentinel": "rediss+sentinel", "per": "", "": "", strings.Repeat("limit", 20): "",
	} {
		if want != "" {
			want = `: did you mean "` + want + `"?`
		}
		if got := fault.DidYouMean(word, known); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}
