package rule_test

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/window"
)

// Rules are compiled once; an engine then decides requests by the set.
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

	i, _ := set.Find("posts-per-hour")
	fmt.Println(set.Rule(i).Kind(), set.Rule(i).Per)
	// Output:
	// [action user]
	// limit [user]
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
