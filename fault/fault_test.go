package fault_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/fault"
)

func ExampleFault() {
	fmt.Println(fault.Fault{
		File: "rules.yaml", Line: 4, Column: 5, Rule: "posts",
		Problem: `unknown key "limt": did you mean "limit"?`, Source: "    limt: 5",
	})
	// Output:
	// rules.yaml:4:5: rule "posts": unknown key "limt": did you mean "limit"?
	//     limt: 5
	//     ^
}

func TestError(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 1000)
	for _, tt := range []struct {
		name string
		f    fault.Fault
		want string
	}{
		{"no line", fault.Fault{File: "f", Line: 1, Column: 1, Problem: "p"}, "f:1:1: p"},
		{"blank line", fault.Fault{File: "f", Line: 1, Column: 1, Problem: "p", Source: " \t"}, "f:1:1: p"},
		{"tabs stay under tabs", fault.Fault{File: "f", Line: 1, Column: 3, Problem: "p", Source: "\tab"}, "f:1:3: p\n\tab\n\t ^"},
		{"past the end", fault.Fault{File: "f", Line: 1, Column: 9, Problem: "p", Source: "ab"}, "f:1:9: p\nab\n  ^"},
		{"control characters", fault.Fault{File: "\x0e", Line: 1, Column: 1, Problem: "\x1b[2J", Source: "\x07x"}, "\ufffd:1:1: \ufffd[2J\n\ufffdx\n^"},
		{"a long problem", fault.Fault{File: "f", Line: 1, Column: 1, Problem: long}, "f:1:1: " + long[:200] + "…" + long[:200]},
		{"a long line", fault.Fault{File: "f", Line: 1, Column: 501, Problem: "p", Source: long}, "f:1:501: p\n" + long[:200] + "\n" + strings.Repeat(" ", 100) + "^"},
	} {
		if got := tt.f.Error(); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

func TestSort(t *testing.T) {
	t.Parallel()
	fs := fault.Faults{
		{File: "list", Line: 1, Column: 1}, {File: "main", Line: 2, Column: 1},
		{File: "main", Line: 1, Column: 5}, {File: "main", Line: 1, Column: 2},
	}
	fs.Sort("main")
	if got, want := fs.Error(), "main:1:2: \nmain:1:5: \nmain:2:1: \nlist:1:1: "; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
