package rule_test

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// Rules are compiled once; a request is then a vector of values.
func ExampleNew() {
	set, err := rule.New([]rule.Rule{{
		Name:   "posts-per-hour",
		When:   []rule.Condition{{Attribute: "action", Test: rule.Equal("post")}},
		Per:    []string{"user"},
		Quota:  &rule.Quota{Value: 5},
		Window: window.Sliding(time.Hour),
	}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.Attributes())

	values := []string{"post", "42"}
	for _, i := range set.Match(values, nil) {
		l := set.LimitOf(i, values).Limit()
		fmt.Printf("%s: %d in %s for %s\n", set.Rule(i).Name, l.Quota, l.Window, set.Key(i, values))
	}

	_, reasons := set.Why(0, []string{"like", ""})
	fmt.Println(reasons)
	// Output:
	// [action user]
	// posts-per-hour: 5 in sliding 1h for 42
	// [action is "like", want one of [post] user is missing]
}

// Everything that is wrong is reported at once.
func ExampleNew_faults() {
	_, err := rule.New([]rule.Rule{{
		Name:   "posts per hour",
		Quota:  &rule.Quota{Value: -5},
		Window: window.Sliding(time.Hour),
		Then:   "denny",
	}}, nil)
	for _, f := range fault.Of(err) {
		fmt.Println(f.Path)
		fmt.Println(" ", f.Summary())
	}
	// Output:
	// rules[0].name
	//   rule "posts per hour": name: "posts per hour" is not a name, want ASCII letters, digits, dots, dashes and underscores, a letter or digit first, up to 100
	// rules[0].limit
	//   rule "posts per hour": limit: -5: want 0 to 9007199254740991
	// rules[0].then
	//   rule "posts per hour": then: unknown outcome "denny": want allow, deny
}
